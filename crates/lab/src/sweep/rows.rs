//! Results as Parquet: one row per point and policy, with all parameters of the point; `docs/measurements/sweep.md`
//! lists the columns.

use super::outcome::{Outcome, PolicyOutcome};
use super::point::{Point, PointPath};
use super::point_score::PointScore;
use super::runs::MEASURED;
use crate::columns::{self, Column};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of paths of a point.
const PATHS: usize = 3;

struct Row<'a> {
    policy: &'a PolicyOutcome,
    point: &'a Point,
    score: &'a PointScore,
}

/// Writes the table.
pub fn write(path: &Path, outcome: &Outcome, points: &[Point]) -> Result<(), Diagnostic> {
    columns::write(path, columns(&outcome.policies, points))
}

/// The table: a row per policy and point.
pub fn columns(policies: &[PolicyOutcome], points: &[Point]) -> Vec<(String, Column)> {
    let by_number: BTreeMap<u32, &Point> = points.iter().map(|point| (point.number, point)).collect();
    let rows: Vec<Row<'_>> = policies
        .iter()
        .flat_map(|policy| policy.points.iter().map(move |score| (policy, score)))
        .filter_map(|(policy, score)| Some(Row { policy, score, point: by_number.get(&score.point)? }))
        .collect();
    columns_of(&rows)
}

fn columns_of(rows: &[Row<'_>]) -> Vec<(String, Column)> {
    let mut columns = Vec::new();
    let text = |value: &dyn Fn(&Row<'_>) -> Option<&'static str>| {
        Column::Text(rows.iter().map(|row| value(row).map(Arc::from)).collect())
    };
    let whole = |value: &dyn Fn(&Row<'_>) -> Option<i64>| Column::Whole(rows.iter().map(value).collect());
    let real = |value: &dyn Fn(&Row<'_>) -> Option<f64>| Column::Real(rows.iter().map(value).collect());
    let mut put = |name: &str, column: Column| columns.push((name.to_owned(), column));
    put("policy", Column::Text(rows.iter().map(|row| Some(Arc::from(row.policy.name.as_str()))).collect()));
    put("seed", whole(&|row| Some(i64::from(row.point.seed))));
    put("point", whole(&|row| Some(i64::from(row.point.number))));
    put("class", text(&|row| Some(row.point.class.name())));
    put("change", text(&|row| row.point.change.map(|change| change.name())));
    put("direction", text(&|row| Some(if row.point.download { "download" } else { "upload" })));
    put("receive_buffer", whole(&|row| row.point.receive_buffer.and_then(|bytes| i64::try_from(bytes).ok())));
    put("paths", whole(&|row| i64::try_from(row.point.paths.len()).ok()));
    put("goodput", real(&|row| Some(row.score.goodput)));
    put("benefit", real(&|row| Some(row.score.benefit)));
    put("regret", real(&|row| Some(row.score.regret)));
    put("best_subset", real(&|row| row.score.best_subset));
    put("p99", real(&|row| row.score.delay.map(|delay| delay.p99)));
    put("tcp_p99", real(&|row| row.score.delay.map(|delay| delay.tcp)));
    for name in MEASURED.iter().filter(|name| **name != "throughput" && !name.starts_with("message")) {
        put(name, real(&|row| row.score.measured.get(*name).copied()));
    }
    for name in ["longest_stall", "delay_p95", "loss_caused"] {
        put(&format!("tcp_{name}"), real(&|row| row.score.best_single.get(name).copied()));
    }
    let competition = |row: &Row<'_>| row.point.competition.as_ref().map(|it| it.connections);
    put("connections", whole(&|row| Some(i64::from(competition(row).unwrap_or(1)))));
    for place in 0..PATHS {
        let of = |value: fn(&PointPath) -> f64| real(&|row| row.point.paths.get(place).map(value));
        let number = place + 1;
        put(&format!("rate_{number}"), of(|path| path.rate));
        put(&format!("round_trip_{number}"), of(|path| path.round_trip));
        put(&format!("queueing_{number}"), of(|path| path.queueing));
        put(&format!("queue_{number}"), of(|path| path.queue as f64));
        put(&format!("loss_{number}"), of(|path| path.loss));
        put(&format!("tcp_{number}"), real(&|row| row.score.singles.get(place).copied()));
    }
    columns
}
