//! Learns dictionaries: E-step, M-step, and the procedures made of them.

pub(crate) mod auto;
pub(crate) mod axes;
mod beside;
pub(crate) mod clean;
pub(crate) mod codes;
pub mod e_step;
pub mod em;
pub mod fit;
pub(crate) mod growth;
pub(crate) mod init;
pub(crate) mod kept;
#[cfg(test)]
mod laws;
pub(crate) mod leaves;
pub(crate) mod m_step;
pub(crate) mod noise;
pub(crate) mod pace;
pub(crate) mod pair;
pub(crate) mod paper;
pub(crate) mod partition;
pub(crate) mod prune;
pub(crate) mod read_out;
mod regroup;
pub(crate) mod run;
pub(crate) mod span;
pub mod stats;
pub mod stream;
mod stream_labels;
#[cfg(test)]
mod stream_laws;
pub(crate) mod tangle;
pub(crate) mod task;
#[cfg(test)]
mod task_laws;
#[cfg(test)]
mod tree_laws;
pub(crate) mod validate;
