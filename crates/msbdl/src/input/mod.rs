//! Checks what comes in: data, prior, settings.

pub mod config;
pub mod data;
pub mod prior;
