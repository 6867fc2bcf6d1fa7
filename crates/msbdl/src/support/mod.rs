//! Holds what the learning stands on: linear algebra, randomness, errors, observers, test data.

pub(crate) mod buffer;
pub mod error;
pub(crate) mod lbfgs;
pub(crate) mod linalg;
pub mod logistic;
pub(crate) mod logs;
pub mod observe;
pub(crate) mod random;
pub mod recovery;
pub mod score;
pub mod synth;
