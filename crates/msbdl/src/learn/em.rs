//! Holds what EM learns and takes its steps, on all samples or block by block.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};
use rand::seq::SliceRandom;

use super::e_step::{Posterior, Prepared};
use super::m_step::update_dictionary;
use super::partition::Step;
use super::stats::Stats;
use super::task::Task;
use crate::input::data::Data;
use crate::input::prior::{GammaStep, Prior};
use crate::support::error::Result;
use crate::support::linalg;
use crate::support::random::{Purpose, stream};

/// Which samples' sums an M-step uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// All samples, refreshed in every iteration.
    Full,
    /// All samples, one block of them refreshed in every iteration (MSBDL-1, MSBDL-2).
    Incremental,
    /// One block of samples alone (MSBDL-3, MSBDL-4).
    Batch,
}

/// Dictionaries, noise variances and hyperparameters, and the samples they are learnt from.
pub(crate) struct Em<'a> {
    pub data: &'a Data,
    pub prior: Arc<dyn Prior>,
    posterior: Posterior,
    schedule: Schedule,
    /// Off only to show that the likelihood then rises at every step.
    pub normalise: bool,
    /// D_j, N_j x M_j.
    pub d: Vec<Array2<f64>>,
    /// What the sample mean was off by, per modality; stays nought if the data are not centred.
    pub offset: Vec<Array1<f64>>,
    /// s_j = sigma_j^2
    pub s: Vec<f64>,
    /// One row of n_gamma per entry of `order`.
    pub gamma: Vec<f64>,
    /// Labels, where there are any.
    pub task: Option<Task>,
    /// Row of gamma -> sample.
    order: Vec<usize>,
    blocks: Vec<Block>,
    next: usize,
    /// Passes over all samples.
    pub e_steps: f64,
}

struct Block {
    rows: Range<usize>,
    /// The latest sums, kept by the incremental schedule.
    stats: Option<Stats>,
}

/// What an E-step is to bring.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub gamma: GammaStep,
    /// Gather the sums of the M-step.
    pub learn: bool,
    /// Gather the correlations between modalities.
    pub cross: bool,
}

impl<'a> Em<'a> {
    pub fn new(
        data: &'a Data,
        prior: Arc<dyn Prior>,
        posterior: Posterior,
        schedule: Schedule,
        block_size: usize,
        seed: u64,
    ) -> Self {
        let l = data.n_samples();
        let mut order: Vec<usize> = (0..l).collect();
        let count = if schedule == Schedule::Full { 1 } else { l.div_ceil(block_size) };
        if count > 1 {
            order.shuffle(&mut stream(seed, Purpose::Shuffle));
        }
        // Blocks of equal size to within one sample.
        let blocks = (0..count)
            .map(|k| Block { rows: k * l / count..(k + 1) * l / count, stats: None })
            .collect();
        let gamma = vec![0.0; l * prior.n_gamma()];
        Em {
            data,
            prior,
            posterior,
            schedule,
            normalise: true,
            d: Vec::new(),
            offset: data.modalities().iter().map(|x| Array1::zeros(x.n_features())).collect(),
            s: Vec::new(),
            gamma,
            task: None,
            order,
            blocks,
            next: 0,
            e_steps: 0.0,
        }
    }

    /// Puts labels beside the samples; those of a block that have one come first, so that chunks
    /// of samples are mostly of one kind.
    pub fn set_task(&mut self, task: Task) {
        for block in &self.blocks {
            self.order[block.rows.clone()].sort_by_key(|&i| !task.shown[i]);
        }
        self.task = Some(task);
    }

    /// Whether codes are made with labels from now on.
    pub fn use_labels(&mut self, use_them: bool) {
        self.task.iter_mut().for_each(|task| task.takes_part = use_them);
    }

    /// Learns W once where a run was stopped before labels took part.
    pub fn catch_up_on_labels(&mut self) -> Result<()> {
        if self.task.as_ref().is_none_or(|task| task.takes_part) {
            return Ok(());
        }
        self.use_labels(true);
        let stats = self.survey(Ask { gamma: GammaStep::Keep, learn: true, cross: false });
        self.task.iter_mut().try_for_each(|task| task.update(&stats))
    }

    /// Iterations that see every sample once.
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The dictionaries as they stand, ready for an E-step.
    pub fn prepared(&self, posterior: Posterior) -> Vec<Prepared> {
        let all = self.d.iter().zip(&self.s).zip(&self.offset);
        all.map(|((d, &s), offset)| Prepared::new(d.view(), s, posterior).with_offset(offset))
            .collect()
    }

    /// E-step and gamma update on the next block; the sums that the schedule's M-step uses.
    pub fn e_step(&mut self, ask: Ask) -> Stats {
        let (count, k) = (self.blocks.len(), self.prior.n_gamma());
        let rows = self.blocks[self.next].rows.clone();
        let here = rows.start * k..rows.end * k;
        // Taken out for the step, so that everything else can be read meanwhile.
        let mut gamma = std::mem::take(&mut self.gamma);
        let stats = self.step_on(ask, &self.order[rows.clone()], &mut gamma[here]);
        self.gamma = gamma;
        self.e_steps += rows.len() as f64 / self.order.len() as f64;
        let current = self.next;
        self.next = (self.next + 1) % count;
        if self.schedule != Schedule::Incremental || count == 1 {
            return stats;
        }
        self.blocks[current].stats = Some(stats.clone());
        let others = self.blocks.iter().enumerate().filter(|(index, _)| *index != current);
        let mut total = stats;
        others.filter_map(|(_, block)| block.stats.as_ref()).for_each(|other| total.merge(other));
        total
    }

    /// The sums over all samples with gamma left as it is.
    pub fn survey(&self, ask: Ask) -> Stats {
        self.step_on(ask, &self.order, &mut self.gamma.clone())
    }

    /// Updates gamma of all samples, and nothing else.
    pub fn renew(&mut self, step: GammaStep) {
        let mut gamma = std::mem::take(&mut self.gamma);
        self.renew_on(step, &self.order, &mut gamma);
        self.gamma = gamma;
    }

    /// Updates some samples' rows of gamma.
    pub fn renew_on(&self, step: GammaStep, samples: &[usize], gamma: &mut [f64]) {
        let ask = Ask { gamma: step, learn: false, cross: false };
        self.with_step(ask, |step| step.renew(samples, gamma));
    }

    /// E-step and gamma update on some samples, given their rows of gamma.
    fn step_on(&self, ask: Ask, samples: &[usize], gamma: &mut [f64]) -> Stats {
        self.with_step(ask, |step| step.run(samples, gamma))
    }

    fn with_step<R>(&self, ask: Ask, run: impl FnOnce(&Step) -> R) -> R {
        // Coefficients are judged one by one, by slopes that must be exact.
        let posterior = match ask.gamma {
            GammaStep::Toggle(_) => Posterior::Exact,
            _ => self.posterior,
        };
        let task = self.task.as_ref().filter(|task| task.takes_part);
        let labels = task.map(|task| task.stacked(self, posterior));
        let step = Step {
            data: self.data,
            prior: &*self.prior,
            dictionaries: &self.prepared(posterior),
            labels: labels.as_ref(),
            gamma_step: ask.gamma,
            learn: ask.learn,
            cross: ask.cross,
        };
        run(&step)
    }

    /// D_j = B C^-1 for the modalities that are not frozen, and W_j; relative changes of D.
    pub fn m_step(&mut self, stats: &Stats, frozen: &[bool]) -> Result<Vec<f64>> {
        if let Some(task) = &mut self.task {
            task.update(stats)?;
        }
        let center = self.data.center();
        let all = self.d.iter_mut().zip(&mut self.offset).zip(&stats.modalities).zip(frozen);
        all.map(|(((d, offset), stats), frozen)| {
            if *frozen || stats.count == 0 {
                return Ok(0.0);
            }
            update_dictionary(d, center.then_some(offset), stats, self.normalise)
        })
        .collect()
    }

    /// Gives every coefficient the same variance.
    pub fn level(&mut self, power: f64) {
        let power = vec![power; self.prior.n_branches()];
        for gamma in self.gamma.chunks_exact_mut(self.prior.n_gamma()) {
            self.prior.set_all(gamma, &power);
        }
    }

    /// Dimensions that modality j's signal can fill.
    pub fn dimensions(&self, j: usize) -> usize {
        self.data.modalities()[j].n_features().min(self.prior.n_atoms(j))
    }

    /// Mean energy per dimension of the signal (the energy of a sample is one on average).
    pub fn energy(&self, j: usize) -> f64 {
        1.0 / self.dimensions(j) as f64
    }

    /// The fewest dimensions of any modality, in branches.
    pub fn least_dimensions(&self) -> usize {
        let branches = self.prior.n_branches();
        let each = |j| self.dimensions(j) / self.prior.n_atoms(j).div_ceil(branches);
        (0..self.d.len()).map(each).min().unwrap_or(1).max(1)
    }

    /// At most `count` rows of gamma, evenly spread.
    pub fn some_rows(&self, count: usize) -> Vec<usize> {
        let l = self.order.len();
        let count = count.min(l);
        (0..count).map(|i| i * l / count).collect()
    }

    /// The sample that a row of gamma belongs to.
    pub fn sample(&self, row: usize) -> usize {
        self.order[row]
    }

    /// Whether the sample of a row of gamma has modality j.
    pub fn has(&self, j: usize, row: usize) -> bool {
        self.data.modalities()[j].present()[self.order[row]]
    }

    /// v_j of a row of gamma.
    pub fn variances(&self, j: usize, row: usize) -> Array1<f64> {
        let k = self.prior.n_gamma();
        let mut v = vec![0.0; self.prior.n_atoms(j)];
        self.prior.variances(&self.gamma[row * k..(row + 1) * k], j, &mut v);
        Array1::from(v)
    }

    /// Column k of D_j becomes what column `from[k]` was, here and in remembered sums.
    pub fn permute(&mut self, j: usize, from: &[usize]) {
        self.d[j] = self.d[j].select(Axis(1), from);
        if let Some(task) = &mut self.task {
            task.w[j] = task.w[j].select(Axis(1), from);
        }
        for stats in self.blocks.iter_mut().filter_map(|block| block.stats.as_mut()) {
            let stats = &mut stats.modalities[j];
            stats.c = stats.c.select(Axis(0), from).select(Axis(1), from);
            stats.b = stats.b.select(Axis(1), from);
            stats.mu = stats.mu.select(Axis(0), from);
            stats.energy = stats.energy.select(Axis(0), from);
            stats.labels.iter_mut().for_each(|labels| labels.permute(from));
        }
    }

    /// D_j T and W_j T, with remembered sums of the codes T^-1 x; `inverse` is T^-1.
    pub fn transform(&mut self, j: usize, t: &Array2<f64>, inverse: &Array2<f64>) {
        self.d[j] = linalg::product(self.d[j].view(), t.view());
        if let Some(task) = &mut self.task {
            task.w[j] = linalg::product(task.w[j].view(), t.view());
        }
        for stats in self.blocks.iter_mut().filter_map(|block| block.stats.as_mut()) {
            let stats = &mut stats.modalities[j];
            let half = linalg::product(inverse.view(), stats.c.view());
            stats.c = linalg::product(half.view(), inverse.t());
            stats.b = linalg::product(stats.b.view(), inverse.t());
            stats.mu = inverse.dot(&stats.mu);
            stats.labels.iter_mut().for_each(|labels| labels.transform(inverse));
        }
    }

    /// Exchanges the prior; its branch k keeps the root's variance of what was branch `order[k]`.
    pub fn move_to(&mut self, prior: Arc<dyn Prior>, order: &[usize]) {
        let mut gamma = vec![0.0; self.data.n_samples() * prior.n_gamma()];
        let mut old_v = vec![0.0; self.prior.n_branches()];
        let old = self.gamma.chunks_exact(self.prior.n_gamma());
        for (gamma, old) in gamma.chunks_exact_mut(prior.n_gamma()).zip(old) {
            self.prior.branch_variances(old, &mut old_v);
            let v: Vec<f64> = order.iter().map(|&k| old_v[k]).collect();
            prior.set_all(gamma, &v);
        }
        (self.gamma, self.prior) = (gamma, prior);
    }

    /// Whether some branch has several atoms of a modality.
    pub fn has_leaves(&self) -> bool {
        (0..self.d.len()).any(|j| self.members(j).iter().any(|atoms| atoms.len() > 1))
    }

    /// The atoms of modality `j`, branch by branch.
    pub fn members(&self, j: usize) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.prior.n_branches()];
        for m in 0..self.d[j].ncols() {
            members[self.prior.branch_of(j, m)].push(m);
        }
        members
    }

    /// Drops what remembered sums say of a branch that has been replaced.
    pub fn forget(&mut self, branch: usize) {
        let prior = self.prior.clone();
        if let Some(task) = &mut self.task {
            for (j, w) in task.w.iter_mut().enumerate() {
                for m in (0..w.ncols()).filter(|&m| prior.branch_of(j, m) == branch) {
                    w.column_mut(m).fill(0.0);
                }
            }
        }
        for stats in self.blocks.iter_mut().filter_map(|block| block.stats.as_mut()) {
            for (j, stats) in stats.modalities.iter_mut().enumerate() {
                for m in (0..stats.mu.len()).filter(|&m| prior.branch_of(j, m) == branch) {
                    stats.c.row_mut(m).fill(0.0);
                    stats.c.column_mut(m).fill(0.0);
                    stats.b.column_mut(m).fill(0.0);
                    stats.mu[m] = 0.0;
                    stats.energy[m] = 0.0;
                    stats.labels.iter_mut().for_each(|labels| labels.forget(m));
                }
            }
        }
    }
}

/// Switches on, per sample, the branches of largest variance: at most half the dimensions.
pub(crate) fn keep_largest(em: &mut Em, power: f64) {
    /// Smaller shares of a sample's largest gamma are off.
    const LEAST: f64 = 0.01;
    let most = (em.least_dimensions() / 2).max(1);
    let mut v = vec![0.0; em.prior.n_branches()];
    let mut order = v.clone();
    for gamma in em.gamma.chunks_exact_mut(em.prior.n_gamma()) {
        em.prior.branch_variances(gamma, &mut v);
        order.copy_from_slice(&v);
        let last = (most - 1).min(v.len() - 1);
        let (larger, least, _) = order.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
        let largest = larger.iter().copied().fold(*least, f64::max);
        let least = least.max(LEAST * largest);
        for v in &mut v {
            *v = if *v >= least && *v > 0.0 { power } else { 0.0 };
        }
        em.prior.set_all(gamma, &v);
    }
}
