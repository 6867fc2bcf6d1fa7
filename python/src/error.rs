//! Turns the library's errors into Python's exceptions, with Python's names of the settings.

use msbdl::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

pub fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        // By its kind it becomes a FileNotFoundError and the like.
        Error::Io { source, .. } => std::io::Error::new(source.kind(), text).into(),
        Error::Numerical(_) => PyRuntimeError::new_err(text),
        Error::Setting { option, .. } | Error::UnknownModality { option, .. } => {
            PyValueError::new_err(text.replacen(option, &python_name(option), 1))
        }
        Error::TooManyAtoms { .. } => PyValueError::new_err(format!("n_{text}")),
        _ => PyValueError::new_err(text),
    }
}

/// A run that ended without a word has panicked; the message is on standard error.
pub fn panicked() -> PyErr {
    PyRuntimeError::new_err("msbdl stopped because of an error of its own; please report it")
}

fn python_name(option: &str) -> String {
    match option {
        "atoms" => "n_atoms".into(),
        "threads" => "n_jobs".into(),
        "seed" => "random_state".into(),
        "encode" | "predict" | "batch" => "X".into(),
        other => other.replace('-', "_"),
    }
}
