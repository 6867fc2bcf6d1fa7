//! Shows a model to Python: its arrays, its history, its file, codes of new samples.

use std::path::PathBuf;
use std::sync::Arc;

use msbdl::{Facts, LabelKind, NameType, StopReason};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::apart::apart;
use super::error::exception;
use super::settings::{choose, preset_name, prior_name};
use super::{Views, owned};

/// A model that has been learnt; it never changes.
#[pyclass(frozen, module = "msbdl._core")]
#[derive(Clone)]
pub struct Model(Arc<msbdl::Model>);

type Matrix<'py> = Bound<'py, PyArray2<f64>>;
/// Posterior means, variances and what they stand for, of one modality.
type Part<'py> = (String, Matrix<'py>, Matrix<'py>, Matrix<'py>);
/// Probabilities, decision function, and the probabilities that each modality votes for.
type Prediction<'py> = (Matrix<'py>, Matrix<'py>, Vec<(String, Matrix<'py>)>);
/// gamma, log-evidence, and the parts.
type Codes<'py> = (Matrix<'py>, Bound<'py, PyArray1<f64>>, Vec<Part<'py>>);

/// Python's names of them.
const NAME_TYPES: [(&str, NameType); 3] =
    [("str", NameType::Text), ("int", NameType::Integer), ("bool", NameType::Boolean)];

impl Model {
    pub fn new(model: msbdl::Model) -> Self {
        Model(Arc::new(model))
    }

    pub fn get(&self) -> &msbdl::Model {
        &self.0
    }
}

#[pymethods]
impl Model {
    #[staticmethod]
    fn load(py: Python, path: PathBuf) -> PyResult<Self> {
        py.detach(|| msbdl::Model::load(&path)).map(Model::new).map_err(exception)
    }

    /// Writes the model's file, with the labelled samples that batches brought or without.
    #[pyo3(signature = (path, samples, name_type=None))]
    fn save(
        &self,
        py: Python,
        path: PathBuf,
        samples: bool,
        name_type: Option<&str>,
    ) -> PyResult<()> {
        let name_type = name_type.map(|name| choose("name_type", &NAME_TYPES, name)).transpose()?;
        let save = || {
            let mut model = msbdl::Model::clone(&self.0);
            if let Some(classifier) = &mut model.classifier {
                classifier.name_type = name_type;
            }
            if samples { model } else { model.without_samples() }.save(&path)
        };
        py.detach(save).map_err(exception)
    }

    /// The bytes of the model's file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.0.to_bytes().map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        msbdl::Model::from_bytes(bytes).map(Model::new).map_err(PyValueError::new_err)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let class: Bound<PyType> = py.get_type::<Model>();
        Ok((class.getattr("from_bytes")?, (self.to_bytes(py)?,)))
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.modalities.iter().map(|modality| modality.name.as_str()).collect()
    }

    #[getter]
    fn dictionaries<'py>(&self, py: Python<'py>) -> Vec<Matrix<'py>> {
        self.0.modalities.iter().map(|modality| modality.dictionary.to_pyarray(py)).collect()
    }

    #[getter]
    fn means<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.0.modalities.iter().map(|modality| modality.mean.to_pyarray(py)).collect()
    }

    #[getter]
    fn scales(&self) -> Vec<f64> {
        self.0.modalities.iter().map(|modality| modality.scale).collect()
    }

    #[getter]
    fn noise_variances(&self) -> Vec<f64> {
        self.0.modalities.iter().map(|modality| modality.sigma2).collect()
    }

    #[getter]
    fn preset(&self) -> &'static str {
        preset_name(self.0.preset)
    }

    #[getter]
    fn prior(&self) -> &'static str {
        prior_name(self.0.prior)
    }

    /// The branches as JSON.
    #[getter]
    fn groups(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.groups())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Per branch: whether its atoms can be told apart.
    #[getter]
    fn identified(&self) -> Vec<bool> {
        self.0.identified.clone()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed
    }

    #[getter]
    fn stop_reason(&self) -> &'static str {
        match self.0.stop_reason {
            StopReason::Converged => "converged",
            StopReason::NotSettled => "not-settled",
            StopReason::MaxIterations => "max-iterations",
            StopReason::Interrupted => "interrupted",
            StopReason::Validated => "validated",
        }
    }

    /// The classes or tags; none if the model was learnt without labels.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.0.classifier.as_ref().map(|classifier| classifier.names.clone())
    }

    /// What they are in Python, where the file says it.
    #[getter]
    fn name_type(&self) -> Option<&'static str> {
        let name_type = self.0.classifier.as_ref()?.name_type?;
        NAME_TYPES.iter().find(|(_, each)| *each == name_type).map(|(name, _)| *name)
    }

    /// The same with those that no sample has had yet.
    #[getter]
    fn all_labels(&self) -> Option<Vec<String>> {
        self.0.label_names().map(<[String]>::to_vec)
    }

    /// Whether a sample may have several labels.
    #[getter]
    fn has_tags(&self) -> bool {
        self.0.classifier.as_ref().is_some_and(|classifier| classifier.kind == LabelKind::Tags)
    }

    #[getter]
    fn n_iter(&self) -> usize {
        self.0.history.len()
    }

    /// Share of the training samples that use each atom.
    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.0.summary.usage.to_pyarray(py)
    }

    #[getter]
    fn variance_explained(&self) -> Vec<f64> {
        self.0.summary.modalities.iter().map(|modality| modality.variance_explained).collect()
    }

    #[getter]
    fn n_samples(&self) -> usize {
        self.0.summary.n_samples
    }

    /// One array per fact, a row per iteration; a column per modality where facts have that.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let stages: Vec<&str> = self.0.history.iter().map(|facts| facts.stage.as_str()).collect();
        dict.set_item("stage", stages)?;
        dict.set_item("log_likelihood", self.column(py, |facts| facts.log_likelihood))?;
        dict.set_item("e_steps", self.column(py, |facts| facts.e_steps))?;
        dict.set_item("atoms_cleaned", self.column(py, |facts| facts.atoms_cleaned as i64))?;
        dict.set_item("columns_paired", self.column(py, |facts| facts.columns_paired as i64))?;
        if self.0.history.iter().any(|facts| !facts.beta.is_empty()) {
            let validation = |facts: &Facts| facts.validation.unwrap_or(f64::NAN);
            dict.set_item("validation", self.column(py, validation))?;
            dict.set_item("beta", self.columns(py, |facts| &facts.beta))?;
        }
        dict.set_item("sigma", self.columns(py, |facts| &facts.sigma))?;
        dict.set_item("dictionary_change", self.columns(py, |facts| &facts.dictionary_change))?;
        Ok(dict)
    }

    /// Probabilities, decision function, and what each modality says; a column for each label.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        views: Views,
        threads: usize,
    ) -> PyResult<Prediction<'py>> {
        let (model, views) = (Arc::clone(&self.0), owned(views));
        let found =
            apart(py, move || model.predict_by(views, None, threads))?.map_err(exception)?;
        let votes = found.votes.into_iter();
        let votes = votes.map(|vote| (vote.modality, vote.probability.into_pyarray(py)));
        let votes = votes.collect();
        Ok((found.probability.into_pyarray(py), found.decision.into_pyarray(py), votes))
    }

    fn encode<'py>(&self, py: Python<'py>, views: Views, threads: usize) -> PyResult<Codes<'py>> {
        let (model, views) = (Arc::clone(&self.0), owned(views));
        let codes = apart(py, move || model.encode_on(views, threads))?.map_err(exception)?;
        let parts = codes.modalities.into_iter().map(|part| {
            let [mean, variance, reconstruction] =
                [part.mean, part.variance, part.reconstruction].map(|x| x.into_pyarray(py));
            (part.name, mean, variance, reconstruction)
        });
        let parts = parts.collect();
        Ok((codes.gamma.into_pyarray(py), codes.log_evidence.into_pyarray(py), parts))
    }
}

impl Model {
    fn column<'py, T: numpy::Element>(
        &self,
        py: Python<'py>,
        fact: impl Fn(&Facts) -> T,
    ) -> Bound<'py, PyArray1<T>> {
        self.0.history.iter().map(fact).collect::<Vec<T>>().into_pyarray(py)
    }

    fn columns<'py>(&self, py: Python<'py>, facts: impl Fn(&Facts) -> &Vec<f64>) -> Matrix<'py> {
        let shape = (self.0.history.len(), self.0.modalities.len());
        let table = Array2::from_shape_fn(shape, |(t, j)| facts(&self.0.history[t])[j]);
        table.into_pyarray(py)
    }
}
