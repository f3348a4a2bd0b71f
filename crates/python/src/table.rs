//! Tables that other libraries read without a copy (Arrow's PyCapsule interface).

use crate::failure::plain;
use anabranch_lab::columns::Column;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use std::sync::Arc;

/// A table: named columns of one length.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Table(RecordBatch);

impl Table {
    /// Of columns of one length.
    ///
    /// # Errors
    /// Their lengths differ.
    pub fn new(columns: Vec<(String, Column)>) -> PyResult<Self> {
        let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (name, column) in columns {
            let (kind, array): (DataType, ArrayRef) = match column {
                Column::Text(values) => (DataType::Utf8, Arc::new(StringArray::from_iter(values))),
                Column::Whole(values) => (DataType::Int64, Arc::new(Int64Array::from(values))),
                Column::Real(values) => (DataType::Float64, Arc::new(Float64Array::from(values))),
            };
            fields.push(Field::new(name, kind, true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, arrays).map(Self).map_err(plain)
    }
}

/// A column in a copy: its name, what [`DataType`] calls its type, and its values.
type Copied<'py> = (String, String, Bound<'py, PyAny>);

#[pymethods]
impl Table {
    /// Of what `__reduce__` gives.
    #[new]
    fn copied(columns: Vec<Copied<'_>>) -> PyResult<Self> {
        let column = |(name, kind, values): Copied<'_>| {
            let values = match kind.as_str() {
                "Utf8" => {
                    let texts: Vec<Option<String>> = values.extract()?;
                    Column::Text(texts.into_iter().map(|text| text.map(Arc::from)).collect())
                }
                "Int64" => Column::Whole(values.extract()?),
                "Float64" => Column::Real(values.extract()?),
                other => return Err(plain(format!("no column of a table has type {other}"))),
            };
            Ok((name, values))
        };
        Self::new(columns.into_iter().map(column).collect::<PyResult<_>>()?)
    }

    /// For `pickle`, with which other processes return tables.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (Vec<Copied<'py>>,))> {
        let schema = self.0.schema();
        let copied = |(field, array): (&Arc<Field>, &ArrayRef)| {
            let values = match array.data_type() {
                DataType::Int64 => array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>().into_pyobject(py),
                DataType::Float64 => array.as_primitive::<Float64Type>().iter().collect::<Vec<_>>().into_pyobject(py),
                _ => array.as_string::<i32>().iter().collect::<Vec<_>>().into_pyobject(py),
            };
            Ok((field.name().clone(), array.data_type().to_string(), values?))
        };
        let columns: PyResult<_> = schema.fields().iter().zip(self.0.columns()).map(copied).collect();
        Ok((py.get_type::<Self>(), (columns?,)))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another schema is a wish that a producer may ignore.
        drop(requested_schema);
        let (schema, batch) = (self.0.schema(), self.0.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Table: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }
}
