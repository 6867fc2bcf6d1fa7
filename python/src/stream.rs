//! Hands learning from batches to Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::error::exception;
use super::model::Model;
use super::task::{Given, Task};
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

    /// Learns from a batch; `labels` come with the rows whose labels are held back.
    #[pyo3(signature = (views, block, threads, labels=None))]
    fn step(
        &mut self,
        py: Python,
        views: Views,
        block: Option<&str>,
        threads: usize,
        labels: Option<(Given, Vec<usize>)>,
    ) -> PyResult<()> {
        let views = owned(views);
        let labels = labels.map(|(labels, held)| Ok::<_, PyErr>((labels.checked()?, held)));
        let labels = labels.transpose()?;
        let done = py.detach(|| match &labels {
            Some((labels, held)) => {
                self.0.step_with_labels(views, (labels, held.as_slice()), block, threads)
            }
            None => self.0.step(views, block, threads),
        });
        done.map_err(exception)
    }

    /// Names the classes or tags that batches may have.
    fn teach(&mut self, names: Vec<String>, nu: Option<f64>) -> PyResult<()> {
        self.0.teach(names, nu).map_err(exception)
    }

    /// The samples whose labels a fit with this seed holds back.
    #[staticmethod]
    fn held(task: Task, seed: u64) -> PyResult<Vec<usize>> {
        let (labels, task) = task.checked()?;
        task.held_rows(&labels, seed).map_err(exception)
    }

    /// Fits the model's classifier anew on labelled samples.
    fn fit_read_out(
        &mut self,
        py: Python,
        views: Views,
        task: Task,
        threads: usize,
    ) -> PyResult<()> {
        let views = owned(views);
        let (labels, task) = task.checked()?;
        py.detach(|| self.0.fit_read_out(views, &labels, &task, threads)).map_err(exception)
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
