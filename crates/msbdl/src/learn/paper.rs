//! Follows the paper's algorithm: EM until the dictionaries settle, then less noise.

use super::growth::Growth;
use super::run::{Outcome, Repair, Run};
use crate::input::config::Anneal;
use crate::input::prior::GammaStep;

/// Relative change of every dictionary below which the inner loop ends.
const SETTLED: f64 = 1e-2;
/// Passes after which the inner loop ends in any case.
const INNER: usize = 100;
/// Passes between cleanings.
const CLEAN_EVERY: usize = 300;

/// Fig. "MSBDL algorithm for the one-to-one prior"; true when every noise has settled.
///
/// Trees end with the paper's pruning, from as many leaves in every branch.
pub(crate) fn paper(run: &mut Run, anneal: &Anneal, tree: &mut Growth) -> Outcome<bool> {
    run.em.s = anneal.start.clone();
    let blocks = run.em.n_blocks();
    let mut iterations = 0;
    while !run.frozen.iter().all(|frozen| *frozen) {
        let mut last = None;
        for _ in 0..INNER * blocks {
            run.progress = progress(&run.em.s, anneal);
            iterations += 1;
            let clean = iterations % (CLEAN_EVERY * blocks) == 0;
            let gamma = GammaStep::Em { floor: f64::MIN_POSITIVE };
            let stats = run.iterate("anneal", gamma, Repair { pair: false, clean })?;
            let change = run.history.last().map(|facts| facts.dictionary_change.clone());
            last = Some(stats);
            if change.iter().flatten().all(|change| *change < SETTLED) {
                break;
            }
        }
        let Some(stats) = last else { break };
        for (j, stats) in stats.modalities.iter().enumerate() {
            let s = run.em.s[j];
            if run.frozen[j] {
                continue;
            }
            if stats.slope(s) < 0.0 && s > anneal.end[j] {
                run.em.s[j] = (anneal.alpha2 * s).max(anneal.end[j]);
            } else {
                run.frozen[j] = true;
            }
        }
    }
    tree.settle(run);
    Ok(true)
}

/// How far the noise has fallen, on a logarithmic scale.
fn progress(s: &[f64], anneal: &Anneal) -> f64 {
    let each = s.iter().zip(&anneal.start).zip(&anneal.end);
    let done = each.map(|((s, start), end)| (s / start).ln() / (end / start).ln().min(-1e-9));
    done.fold(1.0, f64::min).max(0.0)
}
