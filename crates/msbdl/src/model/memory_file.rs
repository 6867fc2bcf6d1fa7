//! Writes and reads the part of a model file that learning goes on from.

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::Array1;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::ModalityModel;
use super::file::{Read, Tensor, matrix, matrix_with_nan, read, tensor};
use super::memory::{Block, Memory, Taught};
use crate::input::labels::LabelKind;
use crate::learn::kept::Kept;
use crate::learn::stats::{ModalityStats, Stats};
use crate::learn::task::LabelSums;

/// What is not a tensor. The tensors, of every modality NAME and set K of samples, are
/// `base.NAME` and `sums.K.PART.NAME` with the parts c, b, mu, y, energy, labels.c and labels.hmu;
/// `sums.K.gamma` if the set may come again; with labels `weights.NAME`, and if labelled samples
/// are kept `samples.NAME` and `labels`.
#[derive(Serialize, Deserialize)]
pub(super) struct MemoryEntry {
    center: bool,
    sums: Vec<SumsEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taught: Option<TaughtEntry>,
}

/// A set of samples: a batch, or if it has no name all that are never seen again.
#[derive(Serialize, Deserialize)]
struct SumsEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    n_samples: usize,
    active: f64,
    modalities: Vec<PartEntry>,
}

#[derive(Serialize, Deserialize)]
struct PartEntry {
    n_samples: usize,
    log_likelihood: f64,
    residual: f64,
    free: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_labelled: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct TaughtEntry {
    names: Vec<String>,
    mean: Vec<f64>,
    beta2: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nu: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    samples: Option<KeptEntry>,
}

#[derive(Serialize, Deserialize)]
struct KeptEntry {
    kind: LabelKind,
    shown: Vec<bool>,
    counts: Vec<usize>,
    blocks: BTreeMap<String, Vec<usize>>,
}

impl MemoryEntry {
    pub fn new(memory: &Memory) -> Self {
        let past = memory.past.iter().map(|stats| SumsEntry::new(None, stats));
        let blocks = memory.blocks.iter();
        let blocks = blocks.map(|(name, block)| SumsEntry::new(Some(name), &block.stats));
        MemoryEntry {
            center: memory.center,
            sums: past.chain(blocks).collect(),
            taught: memory.taught.as_ref().map(TaughtEntry::new),
        }
    }

    /// The memory, checked against the modalities it belongs to; a sample has `n_gamma`
    /// hyperparameters.
    pub fn with_tensors(
        self,
        modalities: &[ModalityModel],
        n_gamma: usize,
        tensors: &SafeTensors,
    ) -> Read<Memory> {
        let base = modalities
            .iter()
            .map(|x| Ok(Array1::from(read(tensors, &tensor("base", &x.name), &[x.mean.len()])?)))
            .collect::<Read<_>>()?;
        let mut memory = Memory::new(self.center, base);
        let n_labels = self.taught.as_ref().map_or(0, |taught| taught.names.len());
        for (k, entry) in self.sums.into_iter().enumerate() {
            let name = entry.name.clone();
            let stats = entry.with_tensors(k, modalities, n_labels, tensors)?;
            match name {
                None => memory.past = Some(stats),
                Some(name) => {
                    let shape = [stats.count, n_gamma];
                    let gamma = read(tensors, &gamma_of_sums(k), &shape)?;
                    memory.blocks.insert(name, Arc::new(Block { gamma, stats }));
                }
            }
        }
        let taught = self.taught.map(|entry| entry.with_tensors(modalities, tensors));
        memory.taught = taught.transpose()?;
        Ok(memory)
    }
}

impl SumsEntry {
    fn new(name: Option<&String>, stats: &Stats) -> Self {
        let part = |stats: &ModalityStats| PartEntry {
            n_samples: stats.count,
            log_likelihood: stats.log_likelihood,
            residual: stats.residual,
            free: stats.free,
            n_labelled: stats.labels.as_ref().map(|labels| labels.count),
        };
        SumsEntry {
            name: name.cloned(),
            n_samples: stats.count,
            active: stats.active,
            modalities: stats.modalities.iter().map(part).collect(),
        }
    }

    fn with_tensors(
        self,
        k: usize,
        modalities: &[ModalityModel],
        n_labels: usize,
        tensors: &SafeTensors,
    ) -> Read<Stats> {
        let known = self.modalities.iter().flat_map(|part| [part.residual, part.free]);
        if self.modalities.len() != modalities.len()
            || known.chain([self.active]).any(|x| !(x.is_finite() && x >= 0.0))
        {
            return Err(format!("sums {k} do not belong to these modalities"));
        }
        let mut all = Vec::new();
        for (entry, x) in self.modalities.into_iter().zip(modalities) {
            let (n, m) = x.dictionary.dim();
            let name = |part: &str| part_of_sums(k, part, &x.name);
            // The histogram of residuals is not kept: streams never ask for medians.
            let mut stats = ModalityStats::new(n, m);
            stats.count = entry.n_samples;
            stats.log_likelihood = entry.log_likelihood;
            (stats.residual, stats.free) = (entry.residual, entry.free);
            stats.c = matrix(tensors, &name("c"), m, m)?;
            stats.b = matrix(tensors, &name("b"), n, m)?;
            stats.mu = Array1::from(read(tensors, &name("mu"), &[m])?);
            stats.y = Array1::from(read(tensors, &name("y"), &[n])?);
            stats.energy = Array1::from(read(tensors, &name("energy"), &[m])?);
            if let Some(count) = entry.n_labelled {
                let c = matrix(tensors, &name("labels.c"), m, m)?;
                let hmu = matrix(tensors, &name("labels.hmu"), n_labels, m)?;
                stats.labels = Some(LabelSums { count, c, hmu });
            }
            all.push(stats);
        }
        let (count, active) = (self.n_samples, self.active);
        Ok(Stats { count, active, modalities: all, cross: Vec::new() })
    }
}

impl TaughtEntry {
    fn new(taught: &Taught) -> Self {
        TaughtEntry {
            names: taught.names.clone(),
            mean: taught.mean.to_vec(),
            beta2: taught.beta2.clone(),
            nu: taught.nu,
            samples: taught.kept.as_ref().map(|kept| KeptEntry {
                kind: kept.kind,
                shown: kept.shown.clone(),
                counts: kept.counts.clone(),
                blocks: kept.blocks.clone(),
            }),
        }
    }

    fn with_tensors(self, modalities: &[ModalityModel], tensors: &SafeTensors) -> Read<Taught> {
        let c = self.names.len();
        if c == 0 || self.mean.len() != c || self.beta2.len() != modalities.len() {
            return Err("what was taught does not belong to these modalities".into());
        }
        let each = modalities.iter();
        let w = each.map(|x| matrix(tensors, &tensor("weights", &x.name), c, x.dictionary.ncols()));
        Ok(Taught {
            w: w.collect::<Read<_>>()?,
            kept: self
                .samples
                .map(|entry| entry.with_tensors(c, modalities, tensors))
                .transpose()?,
            mean: Array1::from(self.mean),
            names: self.names,
            beta2: self.beta2,
            nu: self.nu,
        })
    }
}

impl KeptEntry {
    fn with_tensors(
        self,
        c: usize,
        modalities: &[ModalityModel],
        tensors: &SafeTensors,
    ) -> Read<Kept> {
        let l = self.shown.len();
        if self.counts.len() != c || self.counts.iter().sum::<usize>() < l {
            return Err("the samples do not belong to these labels".into());
        }
        let each = modalities.iter();
        let samples =
            each.map(|x| matrix_with_nan(tensors, &tensor("samples", &x.name), l, x.mean.len()));
        Ok(Kept {
            kind: self.kind,
            samples: samples.collect::<Read<_>>()?,
            h: matrix(tensors, LABELS, l, c)?,
            shown: self.shown,
            counts: self.counts,
            blocks: self.blocks,
        })
    }
}

/// The tensor of the labels of the samples that are kept.
const LABELS: &str = "labels";

/// The tensors of a memory.
pub(super) fn tensors(memory: &Memory, modalities: &[ModalityModel]) -> Vec<Tensor> {
    let names = || modalities.iter().map(|x| x.name.as_str());
    let mut all = Vec::new();
    for (name, base) in names().zip(&memory.base) {
        all.push(Tensor::new(tensor("base", name), base));
    }
    let past = memory.past.iter().map(|stats| (stats, None));
    let blocks = memory.blocks.values().map(|block| (&block.stats, Some(&block.gamma)));
    for (k, (stats, gamma)) in past.chain(blocks).enumerate() {
        for (name, stats) in names().zip(&stats.modalities) {
            let part = |part: &str| part_of_sums(k, part, name);
            all.push(Tensor::new(part("c"), &stats.c));
            all.push(Tensor::new(part("b"), &stats.b));
            all.push(Tensor::new(part("mu"), &stats.mu));
            all.push(Tensor::new(part("y"), &stats.y));
            all.push(Tensor::new(part("energy"), &stats.energy));
            if let Some(labels) = &stats.labels {
                all.push(Tensor::new(part("labels.c"), &labels.c));
                all.push(Tensor::new(part("labels.hmu"), &labels.hmu));
            }
        }
        if let Some(gamma) = gamma {
            all.push(Tensor::rows(gamma_of_sums(k), stats.count, gamma));
        }
    }
    let Some(taught) = &memory.taught else { return all };
    for (name, w) in names().zip(&taught.w) {
        all.push(Tensor::new(tensor("weights", name), w));
    }
    let Some(kept) = &taught.kept else { return all };
    for (name, y) in names().zip(&kept.samples) {
        all.push(Tensor::new(tensor("samples", name), y));
    }
    all.push(Tensor::new(LABELS.to_owned(), &kept.h));
    all
}

fn gamma_of_sums(k: usize) -> String {
    format!("sums.{k}.gamma")
}

fn part_of_sums(k: usize, part: &str, modality: &str) -> String {
    format!("sums.{k}.{part}.{modality}")
}
