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

use crate::columns::cannot;
use crate::files::Unfinished;
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

/// A value of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample<'a> {
    /// Seconds since the start.
    pub time: f64,
    /// Name of the path, for series that are per path.
    pub path: Option<&'a str>,
    pub metric: &'static str,
    pub unit: &'static str,
    pub value: f64,
}

/// All values of a run's series, those that were measured: curves, then delays of single segments.
pub fn samples<'a>(outcome: &'a Outcome, record: &'a Record) -> impl Iterator<Item = Sample<'a>> {
    let interval = outcome.scenario.sample.as_secs_f64();
    let name = |at: usize| outcome.scenario.paths.get(at).map(|path| path.name.as_str());
    let of_curve = move |curve: &'a Curve| {
        let (path, metric, unit) = (curve.path.and_then(name), curve.series.name(), curve.series.unit());
        let values = curve.values.iter().enumerate().filter(|(_, value)| value.is_finite());
        values.map(move |(at, value)| Sample { time: (at as f64 + 0.5) * interval, path, metric, unit, value: *value })
    };
    // At the time of their first transmission.
    let of_segment = move |segment: &'a SegmentDelay| {
        let (time, path, value) = (segment.sent, name(segment.path), segment.delay);
        Sample { time, path, metric: "answer_delay", unit: "ms", value }
    };
    record.curves.iter().flat_map(of_curve).chain(record.segment_delays.iter().map(of_segment))
}

/// Writes all series of an experiment.
pub fn write(path: &Path, outcome: &Outcome) -> Result<(), Diagnostic> {
    let (file, unfinished) = Unfinished::create(path).map_err(|error| Diagnostic::file(path, "write", &error))?;
    write_all(file, outcome).map_err(|error| cannot(path, &error))?;
    unfinished.complete().map_err(|error| Diagnostic::file(path, "write", &error))
}

fn write_all(file: File, outcome: &Outcome) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    for runs in &outcome.policies {
        for record in &runs.records {
            let samples: Vec<Sample<'_>> = samples(outcome, record).collect();
            let mut group = writer.next_row_group()?;
            write_group(&mut group, outcome, runs, record, &samples)?;
            group.close()?;
        }
    }
    writer.close().map(drop)
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_group(
    group: &mut Group<'_>,
    outcome: &Outcome,
    runs: &PolicyRuns,
    record: &Record,
    samples: &[Sample<'_>],
) -> Result<(), ParquetError> {
    let constant = |text: &str| vec![ByteArray::from(text); samples.len()];
    let texts = |text: fn(&Sample<'_>) -> &'static str| -> Vec<ByteArray> {
        samples.iter().map(|sample| ByteArray::from(text(sample))).collect()
    };
    let numbers = |number: fn(&Sample<'_>) -> f64| -> Vec<f64> { samples.iter().map(number).collect() };
    let paths: Vec<ByteArray> = samples.iter().filter_map(|sample| sample.path.map(ByteArray::from)).collect();
    let defined: Vec<i16> = samples.iter().map(|sample| i16::from(sample.path.is_some())).collect();
    write_column::<ByteArrayType>(group, &constant(&outcome.scenario.name), None)?;
    write_column::<ByteArrayType>(group, &constant(&runs.contender.name), None)?;
    write_column::<Int64Type>(group, &vec![record.seed as i64; samples.len()], None)?;
    write_column::<DoubleType>(group, &numbers(|sample| sample.time), None)?;
    write_column::<Int32Type>(group, &vec![0; samples.len()], None)?;
    write_column::<ByteArrayType>(group, &paths, Some(&defined))?;
    write_column::<ByteArrayType>(group, &texts(|sample| sample.metric), None)?;
    write_column::<ByteArrayType>(group, &texts(|sample| sample.unit), None)?;
    write_column::<DoubleType>(group, &numbers(|sample| sample.value), None)
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
