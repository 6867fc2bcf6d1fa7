//! Learns from batches as they come: incremental EM whose blocks are handed in one by one.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::fit::on_threads;
use super::noise::{Average, free_of, update_noise};
use super::run::{log_likelihood, sigma};
use super::stats::{ModalityStats, Stats};
use super::stream_labels::Taught;
use crate::input::data::Data;
use crate::input::labels::Labels;
use crate::input::prior::{GammaStep, Slab};
use crate::model::summary::summarise;
use crate::model::{ModalityModel, Model};
use crate::support::error::{Error, Result};
use crate::support::observe::Facts;

/// Named matrices, rows are samples.
pub type Named = Vec<(String, Array2<f64>)>;

/// A model that learns from batches.
///
/// A batch that comes for the first time is coded as new samples are; then, and whenever it
/// comes again, it takes one step of incremental EM: E-step on the batch, M-step on the sums of
/// all batches so far. Going through the batches once is one pass of the incremental schedule.
///
/// A batch with a name takes the place of the earlier batch of that name. One without a name is
/// never seen again: its sums stay as they are.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What has been learnt; its summary is that of the latest batch.
    pub model: Model,
    pub(crate) memory: Memory,
}

/// What a stream knows beside its model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    center: bool,
    /// The means that all sums are relative to.
    base: Vec<Array1<f64>>,
    blocks: BTreeMap<String, Block>,
    past: Option<Stats>,
    /// None without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taught: Option<Taught>,
}

/// A batch that may come again: gamma of its samples, and its latest sums.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    gamma: Vec<f64>,
    stats: Stats,
}

impl Stream {
    /// Starts from a model, which is forgotten as batches come.
    pub fn new(model: Model, center: bool) -> Self {
        let base = model.modalities.iter().map(|part| part.mean.clone()).collect();
        let memory = Memory { center, base, blocks: BTreeMap::new(), past: None, taught: None };
        Stream { model, memory }
    }

    /// Starts from a model whose training samples count as a batch that is never seen again.
    ///
    /// A model does not keep its sums; they are made up from the use of its atoms, as if these
    /// were independent of each other.
    pub fn resume(model: Model, center: bool) -> Self {
        let parts = model.modalities.iter().enumerate();
        let past = Stats {
            count: model.summary.n_samples,
            active: model.summary.atoms_per_sample * model.summary.n_samples as f64,
            modalities: parts.map(|(j, part)| remembered(&model, j, part)).collect(),
            cross: Vec::new(),
        };
        let mut stream = Self::new(model, center);
        stream.memory.past = Some(past);
        stream
    }

    /// Learns from a batch; nought threads means one per core.
    pub fn step(&mut self, batch: Named, name: Option<&str>, threads: usize) -> Result<()> {
        self.learn(batch, None, name, threads)
    }

    /// The same from labels as well, but those of the rows that are `held` back; see
    /// [`Stream::teach`].
    pub fn step_with_labels(
        &mut self,
        batch: Named,
        (labels, held): (&Labels, &[usize]),
        name: Option<&str>,
        threads: usize,
    ) -> Result<()> {
        self.learn(batch, Some((labels, held)), name, threads)
    }

    fn learn(
        &mut self,
        batch: Named,
        labels: Option<(&Labels, &[usize])>,
        name: Option<&str>,
        threads: usize,
    ) -> Result<()> {
        let data = self.data(batch)?;
        let prior = self.model.prior_of(&self.model.modalities.iter().collect::<Vec<_>>());
        let l = data.n_samples();
        let seed = self.model.seed;
        let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, l, seed);
        let parts = || self.model.modalities.iter().zip(&self.memory.base);
        em.d = parts().map(|(part, _)| part.dictionary.clone()).collect();
        em.s = parts().map(|(part, _)| part.sigma2 / part.scale.powi(2)).collect();
        em.offset = parts().map(|(part, base)| (&part.mean - base) / part.scale).collect();
        let earlier = self.gamma(name, l)?;
        let others = self.others(name);
        let task = match (labels, &self.memory.taught) {
            (Some((labels, _)), _) if labels.n_samples() != l => {
                return Err(Error::LabelCount { found: labels.n_samples(), expected: l });
            }
            (Some((labels, held)), Some(taught)) => {
                Some(taught.task(labels, held, others.as_ref())?)
            }
            _ => None,
        };
        let mut slab = self.model.slab;
        let (stats, facts, summary) = on_threads(threads, || -> Result<_> {
            match earlier {
                Some(gamma) => em.gamma = gamma,
                None => {
                    let noise = em.s.clone();
                    self.model.find_gamma(&mut em, &noise);
                }
            }
            em.task = task;
            let (stats, facts) = step(&mut em, &mut slab, others.as_ref())?;
            Ok((stats, facts, summarise(&em)))
        })??;
        for (j, part) in self.model.modalities.iter_mut().enumerate() {
            part.dictionary.assign(&em.d[j]);
            part.mean = &self.memory.base[j] + &(&em.offset[j] * part.scale);
            part.sigma2 = em.s[j] * part.scale.powi(2);
        }
        let iteration = self.model.history.len() + 1;
        let mut facts = Facts { iteration, ..facts };
        if let Some(last) = self.model.history.last() {
            facts.e_steps += last.e_steps;
            if facts.beta.is_empty() {
                facts.beta.clone_from(&last.beta);
            }
        }
        self.model.history.push(facts);
        (self.model.slab, self.model.summary) = (slab, summary);
        self.memory.keep(name, Block { gamma: std::mem::take(&mut em.gamma), stats });
        if let (Some(task), Some(taught)) = (em.task, &mut self.memory.taught) {
            taught.keep(task);
        }
        Ok(())
    }

    /// The batch in the stream's units; modalities that were not given are missing.
    pub(crate) fn data(&self, mut batch: Named) -> Result<Data> {
        let l = batch.first().map_or(0, |(_, y)| y.nrows());
        for part in &self.model.modalities {
            if !batch.iter().any(|(name, _)| *name == part.name) {
                let nothing = Array2::from_elem((l, part.mean.len()), f64::NAN);
                batch.push((part.name.clone(), nothing));
            }
        }
        let known = |name: &str| {
            let parts = self.model.modalities.iter().zip(&self.memory.base);
            let found = parts.into_iter().find(|(part, _)| part.name == name);
            let (part, base) = found.ok_or_else(|| self.model.unknown("batch", name))?;
            Ok((base.view(), part.scale))
        };
        Ok(Data::with_scales(batch, known)?.centred(self.memory.center))
    }

    /// gamma of the batch as it was, if it has come before.
    fn gamma(&self, name: Option<&str>, l: usize) -> Result<Option<Vec<f64>>> {
        let earlier = name.and_then(|name| self.memory.blocks.get(name));
        let Some(earlier) = earlier else { return Ok(None) };
        if earlier.stats.count != l {
            return Err(Error::Setting {
                option: "block",
                expected: format!("of {} samples, as before", earlier.stats.count),
                found: format!("of {l}"),
            });
        }
        Ok(Some(earlier.gamma.clone()))
    }

    /// The sums of all batches but the named one.
    fn others(&self, name: Option<&str>) -> Option<Stats> {
        let blocks = self.memory.blocks.iter().filter(|(other, _)| Some(other.as_str()) != name);
        let all = self.memory.past.iter().chain(blocks.map(|(_, block)| &block.stats));
        all.cloned().reduce(|mut sum, other| {
            sum.merge(&other);
            sum
        })
    }

    /// What [`Stream::from_parts`] needs beside the model.
    pub fn memory(&self) -> std::result::Result<String, String> {
        serde_json::to_string(&self.memory).map_err(|error| error.to_string())
    }

    /// A stream as it was when its model and memory were taken.
    pub fn from_parts(model: Model, memory: &str) -> std::result::Result<Self, String> {
        let memory = serde_json::from_str(memory).map_err(|error| error.to_string())?;
        Ok(Stream { model, memory })
    }
}

impl Memory {
    fn keep(&mut self, name: Option<&str>, block: Block) {
        match (name, &mut self.past) {
            (Some(name), _) => {
                self.blocks.insert(name.to_owned(), block);
            }
            (None, Some(past)) => past.merge(&block.stats),
            (None, None) => self.past = Some(block.stats),
        }
    }
}

/// One iteration of incremental EM, as in the selection of `auto`; the batch's own sums.
fn step(em: &mut Em, slab: &mut Slab, others: Option<&Stats>) -> Result<(Stats, Facts)> {
    let own = em.e_step(Ask { gamma: GammaStep::Toggle(*slab), learn: true, cross: false });
    let mut total = own.clone();
    others.into_iter().for_each(|others| total.merge(others));
    let (sigma, log_likelihood) = (sigma(em), log_likelihood(em, &own));
    let dictionary_change = em.m_step(&total, &vec![false; em.d.len()])?;
    let before = em.s.clone();
    update_noise(em, &total, Average::Mean);
    // The noise may change by so much in a pass, of which this is a part.
    let part = own.count as f64 / total.count as f64;
    for (s, before) in em.s.iter_mut().zip(&before) {
        *s = before * (*s / before).powf(part);
    }
    slab.update(&total, em.prior.n_branches());
    let facts = Facts {
        iteration: 0,
        stage: "stream".into(),
        log_likelihood,
        sigma,
        beta: em.task.as_ref().map_or(Vec::new(), |task| task.beta()),
        validation: None,
        dictionary_change,
        atoms_cleaned: 0,
        columns_paired: 0,
        e_steps: part,
        progress: 0.0,
        seconds: 0.0,
    };
    Ok((own, facts))
}

/// The sums of the training samples of modality `j`, as far as the model tells.
fn remembered(model: &Model, j: usize, part: &ModalityModel) -> ModalityStats {
    let (n, m) = part.dictionary.dim();
    let mut stats = ModalityStats::new(n, m);
    stats.count = model.summary.modalities[j].n_samples;
    let count = stats.count as f64;
    let usage = model.branches.branch_of(j).iter().map(|&branch| model.summary.usage[branch]);
    stats.energy = usage.map(|usage| count * usage * model.slab.power).collect();
    stats.c = Array2::from_diag(&stats.energy);
    stats.b = part.dictionary.dot(&stats.c);
    // So many that the noise of the model is what they say.
    stats.free = count * (n as f64 - model.summary.atoms_per_sample).max(0.5);
    stats.residual = part.sigma2 / part.scale.powi(2) * free_of(&stats, n, m);
    stats
}
