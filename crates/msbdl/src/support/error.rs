//! Names everything that can be wrong with what a user hands in, with the facts.

use std::path::PathBuf;

/// What was wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no modality was given")]
    NoModality,
    #[error("modality '{name}' was given twice")]
    DuplicateName { name: String },
    #[error("modality '{name}' has no {what}")]
    Empty { name: String, what: &'static str },
    #[error("modality '{name}' has {found} samples, but modality '{other}' has {expected}")]
    SampleCounts { name: String, found: usize, other: String, expected: usize },
    #[error("modality '{name}', row {row}, column {column}: the value is infinite")]
    Infinite { name: String, row: usize, column: usize },
    #[error(
        "modality '{name}', row {row}: {missing} of {n_features} values are missing; \
         a row must be complete or missing as a whole"
    )]
    PartlyMissing { name: String, row: usize, missing: usize, n_features: usize },
    #[error("modality '{name}' is missing in every sample")]
    AllMissing { name: String },
    #[error("modality '{name}' is {what} in every sample: there is nothing to learn from")]
    Constant { name: String, what: &'static str },
    #[error(
        "modality '{name}' has values around {size:.0e}: their squares cannot be represented; \
         change its unit"
    )]
    Magnitude { name: String, size: f64 },
    #[error("row {row}: every modality is missing")]
    NothingObserved { row: usize },
    #[error("{option}: unknown modality '{name}'; the modalities are {known}")]
    UnknownModality { option: &'static str, name: String, known: String },
    #[error("{option} must be {expected}, not {found}")]
    Setting { option: &'static str, expected: String, found: String },
    #[error(
        "atoms: {atoms} atoms cannot be started from the {usable} samples of modality '{name}' \
         that are not nought"
    )]
    TooManyAtoms { atoms: usize, usable: usize, name: String },
    #[error("modality '{name}' has {found} features, but the model was learnt on {expected}")]
    FeatureCount { name: String, found: usize, expected: usize },
    #[error("there are {found} labels for {expected} samples")]
    LabelCount { found: usize, expected: usize },
    #[error("no sample has a label")]
    NoLabels,
    #[error("every label is '{name}': there is nothing to tell apart")]
    OneClass { name: String },
    #[error(
        "class '{name}' has a single sample, which cannot be both learnt from and set aside for \
         validation; leave the class out or validate on no sample"
    )]
    ClassTooSmall { name: String },
    #[error("no sample that is learnt from has the label '{name}'")]
    LabelWithoutSample { name: String },
    #[error("label {row}: '{name}' is not one of the labels {known}")]
    UnknownLabel { row: usize, name: String, known: String },
    #[error("tags, row {row}, column {column}: the value is {value} instead of 0 or 1")]
    TagValue { row: usize, column: usize, value: f64 },
    #[error("there are {names} names for {columns} tags")]
    TagNames { names: usize, columns: usize },
    #[error("the model has no classifier: it was learnt without labels")]
    NoClassifier,
    #[error(
        "the model has no sums of the samples that it was learnt from, so learning cannot go on: \
         fit anew"
    )]
    NoSums,
    #[error(
        "the model has no labelled samples, which the read-out is fitted on, so learning cannot go \
         on: save them with it, or fit anew"
    )]
    NoSamples,
    #[error("groups: {0}")]
    Groups(String),
    #[error("{path}: {problem}")]
    ModelFile { path: PathBuf, problem: String },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Numerical(String),
}

pub type Result<T> = std::result::Result<T, Error>;
