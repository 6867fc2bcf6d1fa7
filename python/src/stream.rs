//! Hands learning from batches to Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::error::exception;
use super::model::Model;
use super::{Views, owned};

/// A model that learns from batches.
#[pyclass(module = "msbdl._core")]
pub struct Stream(msbdl::Stream);

#[pymethods]
impl Stream {
    /// With `resume`, the model's training samples count as a batch.
    #[new]
    fn new(model: &Model, center: bool, resume: bool) -> Self {
        let model = model.get().clone();
        Stream(match resume {
            true => msbdl::Stream::resume(model, center),
            false => msbdl::Stream::new(model, center),
        })
    }

    #[pyo3(signature = (views, block, threads))]
    fn step(
        &mut self,
        py: Python,
        views: Views,
        block: Option<&str>,
        threads: usize,
    ) -> PyResult<()> {
        let views = owned(views);
        py.detach(|| self.0.step(views, block, threads)).map_err(exception)
    }

    fn model(&self) -> Model {
        Model::new(self.0.model.clone())
    }

    #[staticmethod]
    fn from_parts(model: &Model, memory: &str) -> PyResult<Self> {
        let stream = msbdl::Stream::from_parts(model.get().clone(), memory);
        stream.map(Stream).map_err(PyValueError::new_err)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Model, String))> {
        let memory = self.0.memory().map_err(PyValueError::new_err)?;
        Ok((py.get_type::<Stream>().getattr("from_parts")?, (self.model(), memory)))
    }
}
