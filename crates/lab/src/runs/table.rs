//! Rows as a table.

use super::row::{Line, Row};
use crate::columns::{Column, Kind, Writer};
use crate::{journal, metric};
use anabranch_settings::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Rows of a group of the file; it bounds the memory, since each may repeat the scenario's text.
const GROUP: usize = 1_024;

type Texts = BTreeMap<String, Arc<str>>;

/// Columns that every table has: name, type, and the value of a row.
type Fixed = (&'static str, Kind, fn(&Row, &Texts) -> Cell);

enum Cell {
    Text(Option<Arc<str>>),
    Whole(i64),
}

fn text(value: &str) -> Cell {
    Cell::Text(Some(value.into()))
}

const FIXED: [Fixed; 17] = [
    ("scenario", Kind::Text, |row, _| text(&row.scenario)),
    ("policy", Kind::Text, |row, _| text(&row.policy)),
    ("baseline", Kind::Text, |row, _| Cell::Text(row.baseline.as_deref().map(Arc::from))),
    ("seed", Kind::Whole, |row, _| Cell::Whole(i64::try_from(row.seed).unwrap_or(i64::MAX))),
    ("trace_hash", Kind::Text, |row, _| text(&row.trace_hash)),
    ("paths", Kind::Text, |row, _| text(&row.paths.join(","))),
    ("policies", Kind::Text, |row, _| text(&row.policies)),
    ("datagram", Kind::Text, |row, _| Cell::Text(row.datagram.as_deref().map(Arc::from))),
    ("described", Kind::Text, |row, _| text(&row.described)),
    ("set", Kind::Text, |row, _| text(&row.set.join("\n"))),
    ("grid", Kind::Text, |row, _| text(&grid(row))),
    ("quick", Kind::Whole, |row, _| Cell::Whole(i64::from(row.quick))),
    ("version", Kind::Text, |row, _| text(&row.version)),
    ("commit", Kind::Text, |row, _| text(&row.commit)),
    ("program", Kind::Text, |row, _| text(&row.program)),
    ("key", Kind::Text, |row, _| text(&row.key)),
    ("scenario_text", Kind::Text, |row, texts| Cell::Text(texts.get(&row.text).cloned())),
];

fn grid(row: &Row) -> String {
    row.grid.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("\n")
}

/// Names of the columns that depend on the rows.
#[derive(Default)]
struct Names {
    grid: BTreeSet<String>,
    metrics: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, row: &Row) {
        self.grid.extend(row.grid.iter().map(|(key, _)| key).filter(|key| !is_fixed(key)).cloned());
        let missing = row.metrics.keys().filter(|name| !self.metrics.contains(*name) && !is_fixed(name));
        let missing: Vec<String> = missing.cloned().collect();
        self.metrics.extend(missing);
    }

    /// Name and type of all columns: fixed ones, a text for each parameter, a number for each metric.
    fn kinds(&self) -> Vec<(String, Kind)> {
        let fixed = FIXED.iter().map(|(name, kind, _)| ((*name).to_owned(), *kind));
        let grid = self.grid.iter().map(|key| (key.clone(), Kind::Text));
        fixed.chain(grid).chain(self.metrics.iter().map(|name| (name.clone(), Kind::Real))).collect()
    }

    fn columns(&self, rows: &[Row], texts: &Texts) -> Vec<Column> {
        let fixed = FIXED.iter().map(|(_, kind, value)| {
            let (mut words, mut numbers) = (Vec::new(), Vec::new());
            for row in rows {
                match value(row, texts) {
                    Cell::Text(word) => words.push(word),
                    Cell::Whole(number) => numbers.push(Some(number)),
                }
            }
            if *kind == Kind::Text { Column::Text(words) } else { Column::Whole(numbers) }
        });
        let of_grid = |row: &Row, key: &String| {
            let found = row.grid.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| Arc::from(value.trim_matches('"')))
        };
        let grid = self.grid.iter().map(|key| Column::Text(rows.iter().map(|row| of_grid(row, key)).collect()));
        let real = |name: &String| Column::Real(rows.iter().map(|row| row.metrics.get(name).copied()).collect());
        fixed.chain(grid).chain(self.metrics.iter().map(real)).collect()
    }
}

/// Whether a table of results has a column of this name that is neither a parameter's nor a metric's.
pub fn is_column(name: &str) -> bool {
    // Tables of several experiments say of which a row is.
    is_fixed(name) || name == "experiment"
}

fn is_fixed(name: &str) -> bool {
    FIXED.iter().any(|(known, ..)| *known == name)
}

/// The table of `rows`, with the texts of their scenarios by key.
pub fn columns(rows: &[Row], texts: &BTreeMap<String, Arc<str>>) -> Vec<(String, Column)> {
    let mut names = Names::default();
    rows.iter().for_each(|row| names.add(row));
    let kinds = names.kinds().into_iter().map(|(name, _)| name);
    kinds.zip(names.columns(rows, texts)).collect()
}

/// Writes all rows of a file of lines as Parquet, in the order of the lines. The file's metadata has the unit of each
/// metric, as `unit:NAME`. Gives the number of rows.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(lines: &Path, path: &Path) -> Result<usize, Diagnostic> {
    let (mut names, mut texts) = (Names::default(), Texts::new());
    journal::read(lines, |line: Line| match line {
        Line::Run(row) => names.add(&row),
        Line::Text { text, scenario_text } => drop(texts.insert(text, scenario_text)),
        Line::Part(_) => {}
    })?;
    let units = names.metrics.iter().filter_map(|name| {
        let base = name.split(':').next().unwrap_or(name);
        Some((format!("unit:{name}"), metric::find(base)?.unit.to_owned()))
    });
    let mut writer = Writer::create(path, &names.kinds(), units.collect())?;
    let (mut rows, mut count, mut failure) = (Vec::new(), 0, None);
    let mut flush = |rows: &mut Vec<Row>| {
        if failure.is_none() && !rows.is_empty() {
            failure = writer.group(&names.columns(rows, &texts)).err();
        }
        rows.clear();
    };
    journal::read(lines, |line: Line| {
        if let Line::Run(row) = line {
            rows.push(*row);
            count += 1;
        }
        if rows.len() >= GROUP {
            flush(&mut rows);
        }
    })?;
    flush(&mut rows);
    if let Some(failure) = failure {
        return Err(failure);
    }
    writer.close()?;
    Ok(count)
}
