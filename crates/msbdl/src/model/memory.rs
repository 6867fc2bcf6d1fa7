//! Keeps what learning can go on from: the sums of the samples so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::{Array1, Array2};

use crate::learn::kept::Kept;
use crate::learn::stats::Stats;

/// What incremental EM needs beside the model.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Whether the means are learnt.
    pub center: bool,
    /// The means that all sums are relative to.
    pub base: Vec<Array1<f64>>,
    /// Sums of samples that are never seen again.
    pub past: Option<Stats>,
    /// Batches that may come again.
    pub blocks: BTreeMap<String, Arc<Block>>,
    /// None without labels.
    pub taught: Option<Taught>,
}

/// gamma of a batch's samples, and its latest sums.
#[derive(Debug)]
pub(crate) struct Block {
    pub gamma: Vec<f64>,
    pub stats: Stats,
}

/// What is known of labels.
#[derive(Clone, Debug)]
pub(crate) struct Taught {
    /// The classes or tags that may come.
    pub names: Vec<String>,
    /// Taken off the labels in all sums.
    pub mean: Array1<f64>,
    /// W_j, C x M_j.
    pub w: Vec<Array2<f64>>,
    pub beta2: Vec<f64>,
    /// Ridge on W; by default it grows with the labelled samples.
    pub nu: Option<f64>,
    /// Labelled samples to fit read-outs on.
    pub kept: Option<Kept>,
}

impl Memory {
    /// Nothing learnt from yet.
    pub fn new(center: bool, base: Vec<Array1<f64>>) -> Self {
        Memory { center, base, past: None, blocks: BTreeMap::new(), taught: None }
    }

    /// The sums of all samples but those of the named batch.
    pub fn others(&self, name: Option<&str>) -> Option<Stats> {
        let blocks = self.blocks.iter().filter(|(other, _)| Some(other.as_str()) != name);
        let mut all = self.past.iter().chain(blocks.map(|(_, block)| &block.stats));
        let mut sum = all.next()?.clone();
        all.for_each(|other| sum.merge(other));
        Some(sum)
    }

    pub fn keep(&mut self, name: Option<&str>, block: Block) {
        match (name, &mut self.past) {
            (Some(name), _) => {
                self.blocks.insert(name.to_owned(), Arc::new(block));
            }
            (None, Some(past)) => past.merge(&block.stats),
            (None, None) => self.past = Some(block.stats),
        }
    }
}
