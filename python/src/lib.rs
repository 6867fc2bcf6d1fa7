//! Hands the library to Python: fits on a thread of their own, models, errors as exceptions.

mod apart;
mod error;
mod model;
mod run;
mod settings;
mod stream;
mod task;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::run::Run;
    #[pymodule_export]
    use super::stream::Stream;
}

/// Named matrices as they come from Python; the library keeps a copy in its own units.
type Views<'py> = Vec<(String, numpy::PyReadonlyArray2<'py, f64>)>;

fn owned(views: Views) -> Vec<(String, ndarray::Array2<f64>)> {
    views.into_iter().map(|(name, values)| (name, values.as_array().to_owned())).collect()
}
