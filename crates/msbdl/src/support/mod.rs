//! Holds what the learning stands on: linear algebra, randomness, errors, observers, test data.

pub(crate) mod buffer;
pub mod error;
pub(crate) mod linalg;
pub mod observe;
pub(crate) mod random;
pub mod recovery;
pub mod synth;
