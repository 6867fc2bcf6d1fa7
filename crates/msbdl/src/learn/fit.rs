//! Fits a model: settings are checked, a procedure runs, what it found becomes a model.

use super::auto::auto;
use super::em::Em;
use super::init::start;
use super::paper::paper;
use super::run::{Halt, Run};
use crate::input::config::{Config, Plan, Preset};
use crate::input::data::Data;
use crate::input::prior::{OneToOne, Slab};
use crate::model::summary::summarise;
use crate::model::{ModalityModel, Model, StopReason};
use crate::support::error::{Error, Result};
use crate::support::observe::Observer;

/// Learns dictionaries from data.
///
/// The same data, settings and seed give the same bits whatever the number of threads. When
/// the observer stops the run, the model so far is returned, with its stop reason.
pub fn fit(data: &Data, config: &Config, observer: &mut (dyn Observer + Send)) -> Result<Model> {
    let plan = config.check(data)?;
    on_threads(plan.threads, || run(data, &plan, observer))?
}

/// Runs `work` on a pool of its own; nought threads means one per core.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Numerical(format!("no threads: {error}")))?;
    Ok(pool.install(work))
}

fn run(data: &Data, plan: &Plan, observer: &mut dyn Observer) -> Result<Model> {
    let prior = OneToOne { n_atoms: plan.n_atoms };
    let mut em = Em::new(data, &prior, plan.posterior, plan.schedule, plan.batch_size, plan.seed);
    start(&mut em, plan.seed);
    let mut run = Run::new(em, plan.max_iter, observer);
    let mut slab = Slab { log_odds: 0.0, power: 1.0 };
    let outcome = match plan.preset {
        Preset::Paper => paper(&mut run, &plan.anneal),
        _ => auto(&mut run, &mut slab),
    };
    let stop_reason = match outcome {
        Ok(true) => StopReason::Converged,
        Ok(false) => StopReason::NotSettled,
        Err(Halt::Stopped(reason)) => reason,
        Err(Halt::Failed(error)) => return Err(error),
    };
    let summary = summarise(&run.em);
    if plan.preset == Preset::Paper {
        slab = summary.slab(&run.em);
    }
    let modalities = data.modalities().iter().enumerate().map(|(j, modality)| ModalityModel {
        name: modality.name().to_owned(),
        dictionary: run.em.d[j].clone(),
        mean: modality.mean() + &(&run.em.offset[j] * modality.scale()),
        scale: modality.scale(),
        sigma2: run.em.s[j] * modality.scale().powi(2),
    });
    Ok(Model {
        modalities: modalities.collect(),
        preset: plan.preset,
        seed: plan.seed,
        stop_reason,
        history: run.history,
        slab,
        summary,
    })
}
