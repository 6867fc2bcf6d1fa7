//! Learns dictionaries from several kinds of measurement of the same things at once.

pub mod input;
pub mod learn;
pub mod model;
pub mod support;

pub use input::config::{Config, PerModality, Preset};
pub use input::data::Data;
pub use learn::e_step::Posterior;
pub use learn::em::Schedule;
pub use learn::fit::fit;
pub use model::encode::Codes;
pub use model::{Model, StopReason};
pub use support::error::{Error, Result};
pub use support::observe::{Facts, Next, Observer, Silent};
pub use support::{recovery, synth};

/// Runs the README's code.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
