//! Time series as Parquet: one row per value.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | experiment | string | name of the scenario |
//! | policy | string | name of the combination |
//! | seed | int64 | seed of the run |
//! | time | double | middle of the sampling interval, seconds since the start |
//! | connection | int32 | connection, counted from 0; cross traffic is not recorded |
//! | path | string, optional | name of the path (subflow) for series that are per path |
//! | metric | string | name of the series, as `anabranch list` shows it |
//! | unit | string | unit of the value |
//! | value | double | mean over the interval, or the last or largest value as the series says |

use crate::record::{Curve, Outcome, PolicyRuns, Record, SegmentDelay};
use anabranch_settings::diagnostic::Diagnostic;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message time_series {
    REQUIRED BYTE_ARRAY experiment (UTF8);
    REQUIRED BYTE_ARRAY policy (UTF8);
    REQUIRED INT64 seed;
    REQUIRED DOUBLE time;
    REQUIRED INT32 connection;
    OPTIONAL BYTE_ARRAY path (UTF8);
    REQUIRED BYTE_ARRAY metric (UTF8);
    REQUIRED BYTE_ARRAY unit (UTF8);
    REQUIRED DOUBLE value;
}";

/// Rows of one row group by column: all series of one run.
#[derive(Default)]
struct Columns {
    rows: usize,
    time: Vec<f64>,
    path: Vec<ByteArray>,
    path_defined: Vec<i16>,
    metric: Vec<ByteArray>,
    unit: Vec<ByteArray>,
    value: Vec<f64>,
}

/// Writes all series of an experiment.
pub fn write(path: &Path, outcome: &Outcome) -> Result<(), Diagnostic> {
    let file = File::create(path).map_err(|error| Diagnostic::file(path, "write", &error))?;
    write_all(file, outcome).map_err(|error| Diagnostic::plain(format!("cannot write {}: {error}", path.display())))
}

fn write_all(file: File, outcome: &Outcome) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    for runs in &outcome.policies {
        for record in &runs.records {
            let columns = columns(outcome, record);
            let mut group = writer.next_row_group()?;
            write_group(&mut group, outcome, runs, record, &columns)?;
            group.close()?;
        }
    }
    writer.close().map(drop)
}

fn columns(outcome: &Outcome, record: &Record) -> Columns {
    let mut columns = Columns::default();
    let interval = outcome.scenario.sample.as_secs_f64();
    for curve in &record.curves {
        add_curve(&mut columns, outcome, curve, interval);
    }
    for delay in &record.segment_delays {
        add_segment(&mut columns, outcome, delay);
    }
    columns
}

fn add_curve(columns: &mut Columns, outcome: &Outcome, curve: &Curve, interval: f64) {
    let path = curve.path.and_then(|at| outcome.scenario.paths.get(at)).map(|path| ByteArray::from(path.name.as_str()));
    let (metric, unit) = (ByteArray::from(curve.series.name()), ByteArray::from(curve.series.unit()));
    for (at, value) in curve.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        columns.rows += 1;
        columns.time.push((at as f64 + 0.5) * interval);
        columns.path_defined.push(i16::from(path.is_some()));
        columns.path.extend(path.clone());
        columns.metric.push(metric.clone());
        columns.unit.push(unit.clone());
        columns.value.push(*value);
    }
}

/// Adds a row for a segment, at the time of its first transmission.
fn add_segment(columns: &mut Columns, outcome: &Outcome, segment: &SegmentDelay) {
    let path = outcome.scenario.paths.get(segment.path).map(|path| ByteArray::from(path.name.as_str()));
    columns.rows += 1;
    columns.time.push(segment.sent);
    columns.path_defined.push(i16::from(path.is_some()));
    columns.path.extend(path);
    columns.metric.push(ByteArray::from("answer_delay"));
    columns.unit.push(ByteArray::from("ms"));
    columns.value.push(segment.delay);
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_group(
    group: &mut Group<'_>,
    outcome: &Outcome,
    runs: &PolicyRuns,
    record: &Record,
    columns: &Columns,
) -> Result<(), ParquetError> {
    let constant = |text: &str| vec![ByteArray::from(text); columns.rows];
    write_column::<ByteArrayType>(group, &constant(&outcome.scenario.name), None)?;
    write_column::<ByteArrayType>(group, &constant(&runs.contender.name), None)?;
    write_column::<Int64Type>(group, &vec![record.seed as i64; columns.rows], None)?;
    write_column::<DoubleType>(group, &columns.time, None)?;
    write_column::<Int32Type>(group, &vec![0; columns.rows], None)?;
    write_column::<ByteArrayType>(group, &columns.path, Some(&columns.path_defined))?;
    write_column::<ByteArrayType>(group, &columns.metric, None)?;
    write_column::<ByteArrayType>(group, &columns.unit, None)?;
    write_column::<DoubleType>(group, &columns.value, None)
}

/// Writes the next column; `defined` is 1 for each row with a value, if the column is optional.
fn write_column<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    defined: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(values, defined, None)?;
    column.close()
}
