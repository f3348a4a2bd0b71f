//! Tables by column, and their Parquet files.

use crate::files::Unfinished;
use anabranch_settings::diagnostic::Diagnostic;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A column; missing values are null.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    Text(Vec<Option<Arc<str>>>),
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
}

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    Whole,
    Real,
}

impl Column {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Text(_) => Kind::Text,
            Self::Whole(_) => Kind::Whole,
            Self::Real(_) => Kind::Real,
        }
    }
}

/// Writes a table group by group, into a file that gets its name when it is complete.
pub struct Writer {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    unfinished: Unfinished,
}

impl Writer {
    /// Begins a table of these columns; `notes` are key-value metadata of the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, columns: &[(String, Kind)], notes: Vec<(String, String)>) -> Result<Self, Diagnostic> {
        let (file, unfinished) = Unfinished::create(path).map_err(|error| Diagnostic::file(path, "write", &error))?;
        let notes = notes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(notes))
            .build();
        let begin = || SerializedFileWriter::new(file, Arc::new(schema(columns)?), Arc::new(properties));
        let writer = begin().map_err(|error| cannot(path, &error))?;
        Ok(Self { path: path.to_owned(), writer, unfinished })
    }

    /// Writes rows: all columns, in the order of [`Self::create`], and of one length.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn group(&mut self, columns: &[Column]) -> Result<(), Diagnostic> {
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            columns.iter().try_for_each(|column| write_column(&mut group, column))?;
            group.close().map(drop)
        };
        write().map_err(|error| cannot(&self.path, &error))
    }

    /// Ends the table, which replaces a file of its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(self) -> Result<(), Diagnostic> {
        self.writer.close().map_err(|error| cannot(&self.path, &error))?;
        self.unfinished.complete().map_err(|error| Diagnostic::file(&self.path, "write", &error))
    }
}

/// Names the file that a library failed to write.
pub fn cannot(path: &Path, error: &ParquetError) -> Diagnostic {
    let path = path.display();
    Diagnostic::plain(match error {
        // Of the system, without the library's own words.
        ParquetError::External(error) => format!("cannot write {path}: {error}"),
        error => format!("cannot write {path}: {error}"),
    })
}

/// Writes all of `columns` at once.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, columns: Vec<(String, Column)>) -> Result<(), Diagnostic> {
    let (kinds, columns): (Vec<(String, Kind)>, Vec<Column>) =
        columns.into_iter().map(|(name, column)| ((name, column.kind()), column)).unzip();
    let mut writer = Writer::create(path, &kinds, Vec::new())?;
    writer.group(&columns)?;
    writer.close()
}

fn schema(columns: &[(String, Kind)]) -> Result<Type, ParquetError> {
    let field = |(name, kind): &(String, Kind)| {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical);
        field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("table").with_fields(fields).build()
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, File>, column: &Column) -> Result<(), ParquetError> {
    fn defined<T>(values: &[Option<T>]) -> Vec<i16> {
        values.iter().map(|value| i16::from(value.is_some())).collect()
    }
    let Some(mut writer) = group.next_column()? else { return Ok(()) };
    match column {
        Column::Text(values) => {
            let bytes: Vec<ByteArray> = values.iter().flatten().map(|text| ByteArray::from(&**text)).collect();
            writer.typed::<ByteArrayType>().write_batch(&bytes, Some(&defined(values)), None)?;
        }
        Column::Whole(values) => {
            let numbers: Vec<i64> = values.iter().flatten().copied().collect();
            writer.typed::<Int64Type>().write_batch(&numbers, Some(&defined(values)), None)?;
        }
        Column::Real(values) => {
            let numbers: Vec<f64> = values.iter().flatten().copied().collect();
            writer.typed::<DoubleType>().write_batch(&numbers, Some(&defined(values)), None)?;
        }
    }
    writer.close()
}
