//! Checks what comes in: data, labels, branches, prior, settings.

pub mod branches;
pub mod config;
pub mod data;
pub mod labels;
pub mod prior;
pub(crate) mod shape;
pub mod task;
