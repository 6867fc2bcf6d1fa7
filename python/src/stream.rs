//! Hands learning from batches to Python.

use pyo3::prelude::*;

use super::apart::apart;
use super::error::exception;
use super::model::Model;
use super::task::{Given, Task};
use super::{Views, owned};

/// A model that learns from batches; what it needs to go on is part of the model.
#[pyclass(module = "msbdl._core")]
pub struct Stream(msbdl::Stream);

#[pymethods]
impl Stream {
    /// Begins with the dictionaries alone, which are forgotten as batches come.
    #[staticmethod]
    fn start(model: &Model, center: bool) -> Self {
        Stream(msbdl::Stream::new(model.get().clone(), center))
    }

    /// Goes on from the sums of the samples so far.
    #[staticmethod]
    fn resume(model: &Model) -> PyResult<Self> {
        msbdl::Stream::resume(model.get().clone()).map(Stream).map_err(exception)
    }

    /// Learns from a batch; `labels` come with the share of them that is held back.
    #[pyo3(signature = (views, block, threads, labels=None))]
    fn step(
        &mut self,
        py: Python,
        views: Views,
        block: Option<&str>,
        threads: usize,
        labels: Option<(Given, f64)>,
    ) -> PyResult<()> {
        let views = owned(views);
        let labels = labels.map(|(labels, share)| Ok::<_, PyErr>((labels.checked()?, share)));
        let labels = labels.transpose()?;
        let block = block.map(str::to_owned);
        self.change(py, move |stream| match &labels {
            Some((labels, share)) => {
                let held = stream.hold(labels, *share, block.as_deref())?;
                stream.step_with_labels(views, (labels, &held), block.as_deref(), threads)
            }
            None => stream.step(views, block.as_deref(), threads),
        })
    }

    /// Names the classes or tags that batches may have.
    fn teach(&mut self, names: Vec<String>, nu: Option<f64>) -> PyResult<()> {
        self.0.teach(names, nu).map_err(exception)
    }

    /// The classes or tags that batches may have; none without labels.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.0.labels().map(<[String]>::to_vec)
    }

    /// Keeps the labelled samples of the fit that the model comes from.
    fn keep(&mut self, views: Views, labels: Given, held: Vec<usize>) -> PyResult<()> {
        self.0.keep(&owned(views), (&labels.checked()?, &held)).map_err(exception)
    }

    /// The samples whose labels a fit with this seed holds back.
    #[staticmethod]
    fn held(labels: Given, task: Task, seed: u64) -> PyResult<Vec<usize>> {
        task.config().held_rows(&labels.checked()?, seed).map_err(exception)
    }

    /// The samples whose labels the first batch of all holds back.
    #[staticmethod]
    fn held_first(labels: Given, share: f64) -> PyResult<Vec<usize>> {
        Ok(msbdl::Stream::hold_first(&labels.checked()?, share))
    }

    /// Fits the model's classifier anew on the labelled samples that were kept.
    fn fit_read_out(&mut self, py: Python, task: Task, threads: usize) -> PyResult<()> {
        let task = task.config();
        self.change(py, move |stream| stream.fit_read_out(&task, threads))
    }

    fn model(&self) -> Model {
        Model::new(self.0.model().clone())
    }
}

impl Stream {
    /// Changes the stream, unless Ctrl-C or an error comes in between.
    fn change(
        &mut self,
        py: Python,
        work: impl FnOnce(&mut msbdl::Stream) -> msbdl::Result<()> + Send + 'static,
    ) -> PyResult<()> {
        let mut stream = self.0.clone();
        let changed = apart(py, move || work(&mut stream).map(|()| stream))?;
        self.0 = changed.map_err(exception)?;
        Ok(())
    }
}
