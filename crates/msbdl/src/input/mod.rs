//! Checks what comes in: data, labels, prior, settings.

pub mod config;
pub mod data;
pub mod labels;
pub mod prior;
pub mod task;
