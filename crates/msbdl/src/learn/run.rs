//! Takes EM iterations one by one, tells the observer of each, and stops when asked.

use std::time::Instant;

use super::clean::clean;
use super::em::{Ask, Em};
use super::pair::repair_pairing;
use super::stats::Stats;
use super::validate::Validator;
use crate::input::prior::GammaStep;
use crate::model::StopReason;
use crate::support::error::Error;
use crate::support::observe::{Facts, Next, Observer};

/// Why a procedure did not run to its end.
pub(crate) enum Halt {
    Stopped(StopReason),
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

pub(crate) type Outcome<T> = Result<T, Halt>;

/// What an iteration does beside EM.
#[derive(Clone, Copy, Default)]
pub(crate) struct Repair {
    pub pair: bool,
    pub clean: bool,
}

/// A fit under way.
pub(crate) struct Run<'a> {
    pub em: Em<'a>,
    /// Modalities whose dictionary is settled.
    pub frozen: Vec<bool>,
    pub history: Vec<Facts>,
    pub progress: f64,
    /// Looks at labels that were held back.
    pub validator: Option<Validator>,
    /// Whether those may end the run.
    pub stop_early: bool,
    observer: &'a mut dyn Observer,
    max_iter: usize,
    started: Instant,
}

impl<'a> Run<'a> {
    pub fn new(em: Em<'a>, max_iter: usize, observer: &'a mut dyn Observer) -> Self {
        Run {
            frozen: vec![false; em.data.modalities().len()],
            em,
            history: Vec::new(),
            progress: 0.0,
            validator: None,
            stop_early: false,
            observer,
            max_iter,
            started: Instant::now(),
        }
    }

    /// E-step, M-step, repairs; the facts go to the observer and into the history.
    pub fn iterate(&mut self, stage: &str, gamma: GammaStep, repair: Repair) -> Outcome<Stats> {
        let sigma = sigma(&self.em);
        let several = self.em.d.len() > 1;
        let ask = Ask { gamma, learn: true, cross: repair.pair && several };
        let stats = self.em.e_step(ask);
        let dictionary_change = self.em.m_step(&stats, &self.frozen)?;
        let columns_paired = if ask.cross { repair_pairing(&mut self.em, &stats) } else { 0 };
        let atoms_cleaned = if repair.clean { clean(&mut self.em, &stats, false) } else { 0 };
        let iteration = self.history.len() + 1;
        let beta = self.em.task.as_ref().map_or(Vec::new(), |task| task.beta());
        let validator = self.validator.as_mut();
        let validation = validator.and_then(|validator| validator.look(&mut self.em, iteration));
        let facts = Facts {
            iteration,
            stage: stage.to_owned(),
            log_likelihood: log_likelihood(&self.em, &stats),
            sigma,
            beta,
            validation,
            dictionary_change,
            atoms_cleaned,
            columns_paired,
            e_steps: self.em.e_steps,
            progress: self.progress,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        let next = self.observer.see(&facts);
        self.history.push(facts);
        if next == Next::Stop {
            return Err(Halt::Stopped(StopReason::Interrupted));
        }
        if self.stop_early && self.validator.as_ref().is_some_and(Validator::done) {
            return Err(Halt::Stopped(StopReason::Validated));
        }
        if self.history.len() >= self.max_iter {
            return Err(Halt::Stopped(StopReason::MaxIterations));
        }
        Ok(stats)
    }
}

/// Noise standard deviations in the user's units.
pub(crate) fn sigma(em: &Em) -> Vec<f64> {
    let scales = em.data.modalities().iter().map(|modality| modality.scale());
    em.s.iter().zip(scales).map(|(s, scale)| s.sqrt() * scale).collect()
}

/// log p(Y | D, gamma, sigma) of the samples that the sums are of, in the user's units.
pub(crate) fn log_likelihood(em: &Em, stats: &Stats) -> f64 {
    let modalities = em.data.modalities().iter().zip(&stats.modalities);
    let each = modalities.map(|(modality, stats)| {
        let values = stats.count * modality.n_features();
        stats.log_likelihood - values as f64 * modality.scale().ln()
    });
    each.sum()
}
