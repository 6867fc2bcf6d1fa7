//! Learns dictionaries from several kinds of measurement of the same things at once.

pub mod input;
pub mod learn;
pub mod model;
pub mod support;

pub use input::branches::{Branches, Groups, Place};
pub use input::config::{Config, PerModality, Preset};
pub use input::data::Data;
pub use input::labels::{LabelKind, Labels, NameType};
pub use input::prior::PriorKind;
pub use input::task::{TaskConfig, Validation};
pub use learn::e_step::Posterior;
pub use learn::em::Schedule;
pub use learn::fit::{fit, fit_task};
pub use learn::stream::Stream;
pub use model::classifier::{Classifier, ReadOut};
pub use model::encode::Codes;
pub use model::predict::{Prediction, Vote};
pub use model::{Model, StopReason};
pub use support::error::{Error, Result};
pub use support::observe::{Facts, Next, Observer, Silent};
pub use support::{recovery, score, synth};

/// Runs the README's code.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
