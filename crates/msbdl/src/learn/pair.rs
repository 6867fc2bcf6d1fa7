//! Finds columns that are paired with the wrong column of another modality, and moves them.
//!
//! Wrong pairing is the main local optimum: column k is true atom a in one modality and true
//! atom b in another. Codes of the same atom rise and fall together over the samples, so the
//! correlation of |mu| between modalities shows where a column belongs.

use ndarray::Array2;

use super::em::Em;
use super::prune::long_leaves;
use super::stats::Stats;

/// Gain in correlation that a column must bring to be moved; larger values let cycles of
/// three columns survive.
const STAY: f64 = 0.02;

/// Aligns all modalities with the least noisy one, or with the roots where branches have
/// leaves; the number of columns moved from one branch to another.
pub(crate) fn repair_pairing(em: &mut Em, stats: &Stats) -> usize {
    let n_modalities = em.d.len();
    let mut by_noise: Vec<usize> = (0..n_modalities).collect();
    let leafy = |j: usize| em.d[j].ncols() > em.prior.n_branches();
    by_noise.sort_by(|&a, &b| {
        let by_noise = noise_share(em, a).total_cmp(&noise_share(em, b));
        leafy(a).cmp(&leafy(b)).then(by_noise)
    });
    // Where each modality's columns have gone, for reading later correlations.
    let mut moved: Vec<Vec<usize>> = em.d.iter().map(|d| (0..d.ncols()).collect()).collect();
    let members: Vec<Vec<Vec<usize>>> = (0..n_modalities).map(|j| em.members(j)).collect();
    let mut count = 0;
    for (done, &j) in by_noise.iter().enumerate().skip(1) {
        // Branch x column: how well the column goes with what is already aligned.
        let mut score = Array2::<f64>::zeros((em.prior.n_branches(), em.d[j].ncols()));
        for &aligned in &by_noise[..done] {
            let correlation = correlation(stats, n_modalities, aligned, j);
            for ((k, l), score) in score.indexed_iter_mut() {
                let atoms = &members[aligned][k];
                let sum: f64 = atoms.iter().map(|&m| correlation[[moved[aligned][m], l]]).sum();
                *score += sum / atoms.len().max(1) as f64 / done as f64;
            }
        }
        let branch_of: Vec<usize> =
            (0..em.d[j].ncols()).map(|m| em.prior.branch_of(j, m)).collect();
        // A short leaf that copies one of another branch goes with that one's root just as well, and
        // must not keep its place for that: only long ones count.
        let long = long_leaves(&em.d[j], &members[j]);
        for (l, &k) in branch_of.iter().enumerate() {
            if !long[l] {
                score.column_mut(l).fill(0.0);
            }
            score[[k, l]] += STAY;
        }
        let from = place(&score, &branch_of);
        let elsewhere = |(m, from): (usize, &usize)| branch_of[m] != branch_of[*from];
        let wrong = from.iter().enumerate().filter(|&x| elsewhere(x)).count();
        if wrong > 0 {
            count += wrong;
            em.permute(j, &from);
            moved[j] = from;
        }
    }
    count
}

/// The best column for every place; a column that stays in its branch keeps its place.
fn place(score: &Array2<f64>, branch_of: &[usize]) -> Vec<usize> {
    let m = branch_of.len();
    let each = Array2::from_shape_fn((m, m), |(place, l)| score[[branch_of[place], l]]);
    let assigned = assign(&each);
    let stays = |l: usize| {
        assigned.iter().position(|&x| x == l).is_some_and(|x| branch_of[x] == branch_of[l])
    };
    let stays: Vec<bool> = (0..m).map(stays).collect();
    let mut from: Vec<usize> = (0..m).collect();
    for k in 0..score.nrows() {
        let mut new = (0..m).filter(|&x| branch_of[x] == k).map(|x| assigned[x]);
        for x in (0..m).filter(|&x| branch_of[x] == k && !stays[x]) {
            from[x] = new.find(|&l| !stays[l]).unwrap_or(x);
        }
    }
    from
}

/// s_j N_j: the share of noise in the modality's energy, which is one.
fn noise_share(em: &Em, j: usize) -> f64 {
    em.s[j] * em.d[j].nrows() as f64
}

fn correlation(stats: &Stats, n_modalities: usize, a: usize, b: usize) -> Array2<f64> {
    let (p, q) = (a.min(b), a.max(b));
    let index = p * (2 * n_modalities - p - 1) / 2 + (q - p - 1);
    let found = stats.cross[index].correlation();
    if a < b { found } else { found.reversed_axes() }
}

/// The assignment row -> column with the largest total score (shortest augmenting paths).
pub(crate) fn assign(score: &Array2<f64>) -> Vec<usize> {
    let n = score.nrows();
    const NONE: usize = usize::MAX;
    let (mut row_price, mut column_price) = (vec![0.0; n], vec![0.0; n + 1]);
    // Column n stands for "the row that is being placed".
    let mut row_of = vec![NONE; n + 1];
    for row in 0..n {
        row_of[n] = row;
        let (mut least, mut before) = (vec![f64::INFINITY; n], vec![n; n]);
        let mut used = vec![false; n + 1];
        let mut column = n;
        while row_of[column] != NONE {
            used[column] = true;
            let row = row_of[column];
            let (mut step, mut nearest) = (f64::INFINITY, n);
            for c in (0..n).filter(|&c| !used[c]) {
                let cost = -score[[row, c]] - row_price[row] - column_price[c];
                if cost < least[c] {
                    (least[c], before[c]) = (cost, column);
                }
                if least[c] < step {
                    (step, nearest) = (least[c], c);
                }
            }
            for c in 0..=n {
                if used[c] {
                    row_price[row_of[c]] += step;
                    column_price[c] -= step;
                } else if c < n {
                    least[c] -= step;
                }
            }
            column = nearest;
        }
        while column != n {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    let mut column_of = vec![0; n];
    for (column, &row) in row_of[..n].iter().enumerate() {
        column_of[row] = column;
    }
    column_of
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::learn::stats::Cross;
    use crate::learn::tree_laws::with_three_branches;

    fn best_by_trying(score: &Array2<f64>, row: usize, free: &mut Vec<usize>) -> f64 {
        if row == score.nrows() {
            return 0.0;
        }
        let mut best = f64::NEG_INFINITY;
        for i in 0..free.len() {
            let column = free.swap_remove(i);
            best = best.max(score[[row, column]] + best_by_trying(score, row + 1, free));
            free.push(column);
            let last = free.len() - 1;
            free.swap(i, last);
        }
        best
    }

    #[test]
    fn assignment_is_the_best_of_all() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for n in 1..7 {
            for _ in 0..20 {
                let score = Array2::from_shape_fn((n, n), |_| rng.random_range(-1.0..1.0));
                let found = assign(&score);
                let total: f64 = found.iter().enumerate().map(|(r, &c)| score[[r, c]]).sum();
                let best = best_by_trying(&score, 0, &mut (0..n).collect());
                assert!((total - best).abs() < 1e-12, "{total} instead of {best}");
            }
        }
    }

    /// A leaf moves to the root that it goes with if it is long, and the one there, which goes with
    /// that root as well, is short.
    #[test]
    fn long_leaves_take_the_places_of_short_ones() {
        let mut product = Array2::zeros((3, 6));
        for (leaf, root) in [(0, 0), (1, 1), (2, 2), (3, 1), (4, 1), (5, 2)] {
            product[[root, leaf]] = 0.6;
        }
        let ones = |count| Array1::ones(count);
        let cross = Cross {
            count: 1.0,
            product,
            sums: [Array1::zeros(3), Array1::zeros(6)],
            squares: [ones(3), ones(6)],
        };
        let stats = Stats { count: 1, active: 0.0, modalities: Vec::new(), cross: vec![cross] };
        with_three_branches(|em| {
            assert_eq!(repair_pairing(em, &stats), 0, "both are long");
            em.d[1][[4, 4]] = 0.2;
            let before = em.d[1].clone();
            assert_eq!(repair_pairing(em, &stats), 2);
            assert_eq!(em.d[1].column(4), before.column(3));
            assert_eq!(em.d[1].column(3), before.column(4));
        });
    }
}
