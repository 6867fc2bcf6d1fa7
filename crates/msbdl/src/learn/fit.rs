//! Fits a model: settings are checked, a procedure runs, what it found becomes a model.

use super::auto::auto;
use super::em::{Ask, Em};
use super::growth::Growth;
use super::init::start;
use super::paper::paper;
use super::read_out::fit_read_outs;
use super::run::{Halt, Run};
use super::span::unit_atoms;
use super::task::Task;
use super::validate::Validator;
use crate::input::config::{Config, Plan, Preset};
use crate::input::data::Data;
use crate::input::labels::Labels;
use crate::input::prior::{GammaStep, PriorKind, Slab};
use crate::input::task::{TaskConfig, TaskPlan};
use crate::model::memory::{Memory, Taught};
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
    on_threads(plan.threads, || run(data, &plan, None, observer))?
}

/// Learns dictionaries from data of which some samples have labels, and how to tell labels.
///
/// The labels pull the dictionaries toward what tells them apart, and the model has a classifier.
pub fn fit_task(
    data: &Data,
    labels: &Labels,
    task: &TaskConfig,
    config: &Config,
    observer: &mut (dyn Observer + Send),
) -> Result<Model> {
    let plan = config.check(data)?;
    let task = task.check(data, labels, plan.preset, plan.seed)?;
    on_threads(plan.threads, || run(data, &plan, Some((labels, &task)), observer))?
}

/// Runs `work` on a pool of its own; nought threads means one per core.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Numerical(format!("no threads: {error}")))?;
    Ok(pool.install(work))
}

fn run(
    data: &Data,
    plan: &Plan,
    task: Option<(&Labels, &TaskPlan)>,
    observer: &mut dyn Observer,
) -> Result<Model> {
    let prior = match plan.preset {
        Preset::Paper => plan.shape.prior,
        // Which atoms belong together is best learnt where they share a variance.
        _ if plan.shape.prior != PriorKind::OneToOne => PriorKind::AtomToSubspace,
        _ => PriorKind::OneToOne,
    };
    let prior = prior.on(&plan.shape.start);
    let mut em = Em::new(data, prior, plan.posterior, plan.schedule, plan.batch_size, plan.seed);
    start(&mut em, plan.seed);
    if let Some((labels, task)) = task {
        let n_atoms: Vec<usize> = (0..em.d.len()).map(|j| em.prior.n_atoms(j)).collect();
        em.set_task(Task::new(labels, task, &n_atoms));
    }
    let validator = task.map(|(_, task)| Validator::new(&em, task));
    let mut run = Run::new(em, plan.max_iter, observer);
    run.validator = validator;
    run.stop_early = plan.preset == Preset::Paper;
    let mut slab = Slab { log_odds: 0.0, power: 1.0 };
    let mut tree = Growth::new(&plan.shape, plan.preset);
    let outcome = match plan.preset {
        Preset::Paper => paper(&mut run, &plan.anneal, &mut tree),
        _ => auto(&mut run, &mut slab, &mut tree),
    };
    let stop_reason = match outcome {
        Ok(true) => StopReason::Converged,
        Ok(false) => StopReason::NotSettled,
        Err(Halt::Stopped(reason)) => reason,
        Err(Halt::Failed(error)) => return Err(error),
    };
    // Stopped early, it may have leaves that are to go, and atoms as long as they liked.
    tree.settle(&mut run);
    if !run.em.normalise {
        slab.power *= unit_atoms(&mut run.em);
    }
    run.em.catch_up_on_labels()?;
    // The last E-step: all samples, with everything as it was learnt.
    let mut stats = run.em.survey(Ask { gamma: GammaStep::Keep, learn: true, cross: false });
    let summary = summarise(&run.em, &stats);
    // The paper's gamma is hardly ever nought.
    stats.active = summary.atoms_per_sample * summary.n_samples as f64;
    let base = data.modalities().iter().map(|modality| modality.mean().clone()).collect();
    let mut memory = Memory::new(data.center(), base);
    memory.past = Some(stats);
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
    let mut model = Model {
        modalities: modalities.collect(),
        preset: plan.preset,
        prior: plan.shape.prior,
        branches: tree.branches,
        identified: tree.identified,
        seed: plan.seed,
        stop_reason,
        history: run.history,
        slab,
        summary,
        classifier: None,
        memory: None,
    };
    if let (Some((labels, plan)), Some(task)) = (task, run.em.task) {
        memory.taught = Some(Taught {
            names: labels.names().to_vec(),
            mean: labels.shares(&plan.shown),
            w: task.w.clone(),
            beta2: task.beta2.clone(),
            nu: plan.nu,
            kept: None,
        });
        let best = run.validator.and_then(Validator::best).map(|best| best.w);
        let w = [task.w].into_iter().chain(best).collect();
        model.classifier = Some(fit_read_outs(&model, data, labels, plan, w, &task.beta2));
    }
    model.memory = Some(memory);
    Ok(model)
}
