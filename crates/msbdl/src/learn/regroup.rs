//! Puts together leaves that were learnt under twin roots, and parts leaves that do not go together.
//!
//! A branch can be learnt as two, each with some of its leaves; their roots are twins. Another two
//! then share a root, which is a mixture, and leaves that are hardly ever on together. Every
//! sample is explained, so no residual shows it.

use ndarray::{Array2, Axis};

use super::em::Em;
use super::prune::long_leaves;

/// Leaves of one branch are correlated by more than this, unless they are on very rarely.
const TOGETHER: f64 = 0.1;

/// The long and the short leaves of every branch, if some have several in modality `j`.
fn leaves(em: &Em, j: usize) -> Option<Vec<(Vec<usize>, Vec<usize>)>> {
    let members = em.members(j);
    if members.iter().all(|atoms| atoms.len() < 2) {
        return None;
    }
    let long = long_leaves(&em.d[j], &members);
    Some(members.into_iter().map(|atoms| atoms.into_iter().partition(|&m| long[m])).collect())
}

/// Gives the long leaves of `weak` to `strong`, if that has short ones to give for them.
pub(super) fn unite(em: &mut Em, weak: usize, strong: usize) -> bool {
    let mut exchange = Vec::new();
    for j in 0..em.d.len() {
        let Some(leaves) = leaves(em, j) else { continue };
        let (long, short) = (&leaves[weak].0, &leaves[strong].1);
        if long.len() > short.len() {
            return false;
        }
        exchange.extend(long.iter().zip(short).map(|(&long, &short)| (j, long, short)));
    }
    for &(j, long, short) in &exchange {
        swap(em, j, long, short);
    }
    !exchange.is_empty()
}

/// Moves the leaf that goes least with the others of its branch to `free`; whether there is one.
///
/// `sizes` holds, per modality, the sizes of some samples' coefficients.
pub(super) fn part(em: &mut Em, sizes: &mut [Array2<f64>], free: usize) -> bool {
    let mut least: Option<(f64, usize, usize)> = None;
    for (j, sizes) in sizes.iter().enumerate() {
        let Some(leaves) = leaves(em, j) else { continue };
        for (long, _) in leaves[..free].iter().chain(&leaves[free + 1..]) {
            for &m in long.iter().filter(|_| long.len() > 1) {
                let others = long.iter().filter(|&&other| other != m);
                let most = others
                    .map(|&other| correlation(sizes, m, other))
                    .fold(f64::NEG_INFINITY, f64::max);
                if most < least.map_or(TOGETHER, |(least, ..)| least) {
                    least = Some((most, j, m));
                }
            }
        }
    }
    let Some((_, j, m)) = least else { return false };
    let Some(&place) = em.members(j)[free].first() else { return false };
    let from = swap(em, j, m, place);
    sizes[j] = sizes[j].select(Axis(1), &from);
    true
}

fn swap(em: &mut Em, j: usize, a: usize, b: usize) -> Vec<usize> {
    let mut from: Vec<usize> = (0..em.d[j].ncols()).collect();
    from.swap(a, b);
    em.permute(j, &from);
    from
}

fn correlation(sizes: &Array2<f64>, a: usize, b: usize) -> f64 {
    let (a, b) = (sizes.column(a), sizes.column(b));
    let (a, b) = (&a - a.mean().unwrap_or(0.0), &b - b.mean().unwrap_or(0.0));
    let both = a.dot(&a) * b.dot(&b);
    if both > 0.0 { a.dot(&b) / both.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::tree_laws::with_three_branches;

    #[test]
    fn leaves_of_twins_come_together() {
        with_three_branches(|em| {
            let before = em.d.clone();
            assert!(!unite(em, 1, 0), "branch 0 has no short leaf to give");
            assert_eq!(em.d, before);
            em.d[1][[3, 3]] = 0.2;
            assert!(!unite(em, 1, 0), "branch 1 has two leaves to give");
            em.d[1][[4, 4]] = 0.2;
            assert!(unite(em, 1, 0));
            assert_eq!(em.d[1].column(3), before[1].column(1));
            assert_eq!(em.d[1][[3, 1]], 0.2);
        });
    }

    #[test]
    fn leaves_that_do_not_go_together_part() {
        with_three_branches(|em| {
            let mut sizes = vec![Array2::zeros((8, 3)), Array2::zeros((8, 6))];
            for i in 0..8 {
                for m in 0..6 {
                    sizes[1][[i, m]] = f64::from(i % 3 == m % 3);
                }
            }
            let (before, together) = (em.d.clone(), sizes.clone());
            assert!(!part(em, &mut sizes, 1));
            assert_eq!((&em.d, &sizes), (&before, &together));
            sizes[1].column_mut(5).fill(0.0);
            sizes[1][[0, 5]] = 1.0;
            let leaf = sizes[1].column(2).to_owned();
            assert!(part(em, &mut sizes, 1));
            assert_eq!(em.d[1].column(1), before[1].column(2));
            assert_eq!(em.d[1].column(2), before[1].column(1));
            assert_eq!(sizes[1].column(1), leaf);
        });
    }
}
