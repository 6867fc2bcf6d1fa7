//! Learns without being told any noise level.
//!
//! Trees go the same way, with all atoms of a branch sharing a variance and as many leaves in every
//! branch; while coefficients are switched, the atoms of a branch may have any length, so leaves
//! that are not wanted show by being short (prune.rs) and leaves that switch on and off are told
//! apart (leaves.rs). Two rounds decide on the number of leaves.
//!
//! temper: EM under falling noise, from many times what it is, so that all modalities become sharp
//!         together; columns that are paired wrongly are moved. How fast noise falls is in pace.rs.
//! select: coefficients are switched on or off by their posterior odds; with the supports
//!         known, the noise of each modality can be measured.
//! Both again from *that* noise, after atoms that are mixed up with each other have been taken
//! apart (tangle.rs), until a round changes no atom any more.
//! polish: the paper's joint EM on the selected coefficients.
//! What each stage buys is in docs/math.md.

use ndarray::{Array2, Axis};

use super::clean::clean;
use super::em::{Ask, Em, keep_largest};
use super::growth::Growth;
use super::leaves::separate;
use super::noise::{Average, update_noise};
use super::pace::{Pace, Round};
use super::pair::repair_pairing;
use super::run::{Outcome, Repair, Run};
use super::span::{principal_axes, share_within, unit_atoms};
use super::tangle::untangle;
use super::validate::Validator;
use crate::input::prior::{GammaStep, PriorKind, Slab};
use crate::input::shape::End;
use crate::support::linalg;

/// Passes of polish between looks at the noise, and altogether.
const POLISH: usize = 3;
const POLISH_AT_MOST: usize = 21;
/// Passes in which leaves are switched one by one, where the prior has them switch.
const SWITCH: usize = 20;
/// Rounds before labels join: they would be weak at first in any case, and fill the codes.
const WITHOUT_LABELS: usize = 1;
/// Rounds, the last ones, that decide on the number of leaves.
const DECIDE: usize = 2;
/// Noise that the first round goes down to, as a share of the energy per dimension.
const FIRST_NOISE: f64 = 0.1;
/// Passes between repairs while gamma is soft, and while it is switched on and off.
const REPAIR_EVERY: (usize, usize) = (15, 10);
/// Tempering repairs only during this part of it: a new atom needs time to settle.
const REPAIR_UNTIL: f64 = 0.8;
/// The least gamma, relative to the least noise, where gamma counts in full: adds less than a
/// per cent to the noise.
const POLISH_FLOOR: f64 = 0.002;
/// Change of log s between looks below which the noise has settled.
const SETTLED: f64 = 0.05;

/// Runs all stages; whether the noise settled, and how coefficients are switched.
pub(crate) fn auto(run: &mut Run, slab: &mut Slab, tree: &mut Growth) -> Outcome<bool> {
    *slab = first_slab(run);
    run.em.s = (0..run.em.d.len()).map(|j| FIRST_NOISE * run.em.energy(j)).collect();
    let mut active = 0.0;
    let rounds = Pace::of(&run.em).rounds;
    let (search, decide) = rounds.split_at(match run.em.has_leaves() {
        true => rounds.len() - DECIDE,
        false => rounds.len(),
    });
    for (count, round) in search.iter().enumerate() {
        run.em.use_labels(count >= WITHOUT_LABELS);
        let before = run.em.d.clone();
        if count > 0 && !run.em.has_leaves() {
            untangle(&mut run.em);
            unit_atoms(&mut run.em);
        }
        temper(run, slab, round)?;
        active = select(run, slab, None)?;
        if count < WITHOUT_LABELS {
            continue;
        }
        let gained = run.validator.as_mut().is_none_or(Validator::gained);
        if !gained || unchanged(&run.em, &before) {
            break;
        }
    }
    for (left, round) in (0..decide.len()).rev().zip(decide) {
        temper(run, slab, round)?;
        // Which of the given branches is which shows best at the end.
        let tree =
            Some(&mut *tree).filter(|tree| left == 0 || matches!(tree.shape.end, End::Learnt(_)));
        active = select(run, slab, tree)?;
    }
    tree.settle(run);
    if !matches!(tree.shape.prior, PriorKind::OneToOne | PriorKind::AtomToSubspace) {
        switch_leaves(run, slab, tree)?;
    }
    let settled = polish(run)?;
    Ok(settled && active > 0.0)
}

/// Whether every branch spans what it did; modalities count by their precision.
pub(super) fn unchanged(em: &Em, before: &[Array2<f64>]) -> bool {
    /// Cosine above which a branch has stayed.
    const STAYED: f64 = 0.99;
    let members: Vec<_> = (0..em.d.len()).map(|j| em.members(j)).collect();
    (0..em.prior.n_branches()).all(|k| {
        let (mut stayed, mut precision) = (0.0, 0.0);
        for (j, s) in em.s.iter().enumerate() {
            let atoms = |d: &Array2<f64>| d.select(Axis(1), &members[j][k]);
            stayed += share_within(&atoms(&em.d[j]), &linalg::basis(atoms(&before[j]))) / s;
            precision += 1.0 / s;
        }
        stayed > STAYED * precision
    })
}

/// The share of the run that is done, if it takes the usual number of rounds.
fn progress(run: &Run) -> f64 {
    const USUAL: usize = 4;
    let pace = Pace::of(&run.em);
    let usual = if run.em.has_leaves() { pace.rounds.len() } else { USUAL };
    let rounds = pace.rounds.iter().take(usual);
    let temper: usize = rounds.map(|round| round.passes() + pace.select).sum();
    // Looking at residuals for new atoms adds a few per cent.
    let passes = (temper + 2 * POLISH) as f64 * 1.05;
    run.em.e_steps / passes.max(run.em.e_steps + POLISH as f64)
}

/// A quarter of the degrees of freedom in use: where the paper's data are.
fn first_slab(run: &Run) -> Slab {
    let (n, m) = (run.em.least_dimensions() as f64, run.em.prior.n_branches() as f64);
    let active = (n / 4.0).clamp(0.5, m / 2.0);
    Slab { log_odds: log_odds(active / m), power: 1.0 / active }
}

fn log_odds(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

fn least_noise(run: &Run) -> f64 {
    run.em.s.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Whether iteration `t` ends a pass after which repairs are due.
fn due(t: usize, blocks: usize, every: usize) -> bool {
    (t + 1).is_multiple_of(every * blocks)
}

/// Returns the number of coefficients that are on at the end.
fn select(run: &mut Run, slab: &mut Slab, mut tree: Option<&mut Growth>) -> Outcome<f64> {
    let mut active = 0.0;
    keep_largest(&mut run.em, slab.power);
    let leafy = run.em.has_leaves();
    if leafy {
        run.em.normalise = false;
        principal_axes(&mut run.em);
    }
    let blocks = run.em.n_blocks();
    let passes = Pace::of(&run.em).select;
    for t in 0..passes * blocks {
        run.progress = progress(run);
        let repair = due(t, blocks, REPAIR_EVERY.1);
        // A new leaf is long whether it is wanted or not, so none must be new at the end.
        let clean = repair && !(leafy && t + 1 == passes * blocks);
        let repair = Repair { pair: repair, clean };
        let stats = run.iterate("select", GammaStep::Toggle(*slab), repair)?;
        update_noise(&mut run.em, &stats, Average::Robust);
        slab.update(&stats, run.em.prior.n_branches());
        active = stats.active;
        if leafy {
            principal_axes(&mut run.em);
        }
        if leafy && t + 1 == passes * blocks * 3 / 4 {
            sort_leaves(&mut run.em, tree.is_none());
            if let Some(tree) = &mut tree {
                tree.decide(run);
            }
        }
    }
    if leafy {
        let identified = separate(&mut run.em);
        slab.power *= unit_atoms(&mut run.em);
        run.em.normalise = true;
        if let Some(tree) = tree {
            tree.identified = identified;
        }
    }
    Ok(active)
}

/// Told apart, a leaf that belongs elsewhere is seen to go with another root, or with none that is
/// there; roots are only replaced while there is time for them to settle.
fn sort_leaves(em: &mut Em, early: bool) {
    separate(em);
    untangle(em);
    let stats = em.survey(Ask { gamma: GammaStep::Keep, learn: false, cross: true });
    em.e_steps += 1.0;
    repair_pairing(em, &stats);
    if early {
        let stats = em.survey(Ask { gamma: GammaStep::Keep, learn: true, cross: false });
        em.e_steps += 1.0;
        clean(em, &stats, true);
    }
}

impl Slab {
    /// The share of coefficients in use, and the mean square of those.
    pub(crate) fn update(&mut self, stats: &crate::learn::stats::Stats, n_gamma: usize) {
        /// Part of the way to the new power: the supports that it was measured on will change.
        const PART: f64 = 0.3;
        let used = stats.active / stats.count as f64;
        if used <= 0.0 {
            return;
        }
        let seen = || stats.modalities.iter().filter(|x| x.count > 0);
        let square: f64 = seen().map(|x| x.c.diag().sum() / x.count as f64).sum();
        let power = square / seen().count() as f64 / used;
        self.power += PART * (power - self.power);
        // Never quite certain, so that any coefficient can still change.
        let rarest = 0.5 / (stats.count * n_gamma) as f64;
        self.log_odds = log_odds((used / n_gamma as f64).clamp(rarest, 0.5));
    }
}

fn temper(run: &mut Run, slab: &Slab, round: &Round) -> Outcome<()> {
    run.em.level(slab.power);
    let noise = run.em.s.clone();
    let energy: Vec<f64> = (0..noise.len()).map(|j| run.em.energy(j)).collect();
    let (blocks, passes_here) = (run.em.n_blocks(), round.passes());
    for t in 0..passes_here * blocks {
        run.progress = progress(run);
        let pass = t as f64 / blocks as f64;
        let multiple = (round.multiple * round.cooling.powf(pass)).max(1.0);
        for ((s, noise), energy) in run.em.s.iter_mut().zip(&noise).zip(&energy) {
            *s = noise.max(energy.min(multiple * noise));
        }
        let last = t + 1 == passes_here * blocks;
        let pair = due(t, blocks, REPAIR_EVERY.0) || last;
        let clean = pair && pass < REPAIR_UNTIL * passes_here as f64;
        let gamma = round.step(&run.em.s);
        run.iterate("temper", gamma, Repair { pair, clean })?;
    }
    run.em.s = noise;
    Ok(())
}

/// From branches that are on or off to the prior's own: leaves of a branch switch one by one.
fn switch_leaves(run: &mut Run, slab: &Slab, tree: &Growth) -> Outcome<()> {
    tree.move_to(&mut run.em, tree.shape.prior.on(&tree.branches));
    for _ in 0..SWITCH * run.em.n_blocks() {
        run.progress = progress(run);
        let stats = run.iterate("leaves", GammaStep::Toggle(*slab), Repair::default())?;
        update_noise(&mut run.em, &stats, Average::Robust);
    }
    Ok(())
}

/// Goes on until the noise has settled; whether it has.
fn polish(run: &mut Run) -> Outcome<bool> {
    for part in 0..POLISH_AT_MOST / POLISH {
        let before = run.em.s.clone();
        for _ in 0..POLISH * run.em.n_blocks() {
            run.progress = run.em.e_steps / (run.em.e_steps + POLISH as f64);
            let gamma = GammaStep::Em { floor: POLISH_FLOOR * least_noise(run) };
            let stats = run.iterate("polish", gamma, Repair::default())?;
            update_noise(&mut run.em, &stats, Average::Mean);
        }
        let stayed = |(s, before): (&f64, &f64)| (s / before).ln().abs() < SETTLED;
        if part > 0 && run.em.s.iter().zip(&before).all(stayed) {
            return Ok(true);
        }
    }
    Ok(false)
}
