//! Runs the real binary: help, every error, and whole sessions.

mod data_errors;
mod demo;
mod file_errors;
mod folder;
mod help;
mod ids;
mod interrupt;
mod model_errors;
mod option_errors;
mod output_errors;
mod readme;
mod session;
mod task;
mod trees;
mod truth;
