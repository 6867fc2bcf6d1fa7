//! Learns from batches as they come: incremental EM whose blocks are handed in one by one.

use ndarray::Array2;

use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::fit::on_threads;
use super::kept::Told;
use super::noise::{Average, update_noise};
use super::run::{log_likelihood, sigma};
use super::stats::Stats;
use crate::input::data::Data;
use crate::input::labels::Labels;
use crate::input::prior::{GammaStep, Slab};
use crate::model::Model;
use crate::model::memory::{Block, Memory};
use crate::model::summary::summarise;
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
///
/// The sums are part of the model and of its file, so learning goes on from a file with the same
/// bits.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Always with a memory.
    pub(super) model: Model,
}

impl Stream {
    /// Starts from the dictionaries of a model, which are forgotten as batches come.
    pub fn new(mut model: Model, center: bool) -> Self {
        let base = model.modalities.iter().map(|part| part.mean.clone()).collect();
        model.memory = Some(Memory::new(center, base));
        Stream { model }
    }

    /// Goes on from a model: after a fit, all its samples are a batch that is never seen again.
    pub fn resume(model: Model) -> Result<Self> {
        match model.has_sums() {
            true => Ok(Stream { model }),
            false => Err(Error::NoSums),
        }
    }

    /// What has been learnt; its summary is that of the latest batch.
    pub fn model(&self) -> &Model {
        &self.model
    }

    pub fn into_model(self) -> Model {
        self.model
    }

    pub(super) fn memory(&self) -> Result<&Memory> {
        self.model.memory.as_ref().ok_or(Error::NoSums)
    }

    pub(super) fn memory_mut(&mut self) -> Result<&mut Memory> {
        self.model.memory.as_mut().ok_or(Error::NoSums)
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
        told: (&Labels, &[usize]),
        name: Option<&str>,
        threads: usize,
    ) -> Result<()> {
        self.learn(batch, Some(told), name, threads)
    }

    fn learn(
        &mut self,
        batch: Named,
        told: Option<Told>,
        name: Option<&str>,
        threads: usize,
    ) -> Result<()> {
        let drawn = told.and_then(|told| self.draw(&batch, told, name));
        let data = self.data(batch)?;
        let memory = self.memory()?;
        let prior = self.model.prior_of(&self.model.modalities.iter().collect::<Vec<_>>());
        let l = data.n_samples();
        let seed = self.model.seed;
        let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, l, seed);
        let parts = || self.model.modalities.iter().zip(&memory.base);
        em.d = parts().map(|(part, _)| part.dictionary.clone()).collect();
        em.s = parts().map(|(part, _)| part.sigma2 / part.scale.powi(2)).collect();
        em.offset = parts().map(|(part, base)| (&part.mean - base) / part.scale).collect();
        let earlier = self.gamma(name, l)?;
        let others = memory.others(name);
        let task = match (told, &memory.taught) {
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
            let seen = em.survey(Ask { gamma: GammaStep::Keep, learn: false, cross: false });
            Ok((stats, facts, summarise(&em, &seen)))
        })??;
        let means: Vec<_> = parts()
            .zip(&em.offset)
            .map(|((part, base), offset)| base + &(offset * part.scale))
            .collect();
        for ((j, part), mean) in self.model.modalities.iter_mut().enumerate().zip(means) {
            part.dictionary.assign(&em.d[j]);
            part.mean = mean;
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
        let memory = self.memory_mut()?;
        memory.keep(name, Block { gamma: std::mem::take(&mut em.gamma), stats });
        if let Some(taught) = &mut memory.taught {
            taught.keep(em.task, name, told.zip(drawn));
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
        let memory = self.memory()?;
        let known = |name: &str| {
            let mut parts = self.model.modalities.iter().zip(&memory.base);
            let found = parts.find(|(part, _)| part.name == name);
            let (part, base) = found.ok_or_else(|| self.model.unknown("batch", name))?;
            Ok((base.view(), part.scale))
        };
        Ok(Data::with_scales(batch, known)?.centred(memory.center))
    }

    /// gamma of the batch as it was, if it has come before.
    fn gamma(&self, name: Option<&str>, l: usize) -> Result<Option<Vec<f64>>> {
        let blocks = &self.memory()?.blocks;
        let earlier = name.and_then(|name| blocks.get(name));
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
    // Where leaves switch by themselves, those that are on say nothing of the branches' odds.
    if em.prior.n_gamma() == em.prior.n_branches() {
        slab.update(&total, em.prior.n_branches());
    }
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
