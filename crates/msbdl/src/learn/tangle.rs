//! Takes atoms apart that are mixed up with each other.
//!
//! An atom that has taken in part of another needs that other beside it whenever it is used, and
//! two atoms may have become sum and difference of what they should be. Every sample is still
//! explained, so no residual shows it, and EM stays there; but the two are on together far more
//! often than chance has it, and there are axes along which their codes are sparser (axes.rs).

use ndarray::Axis;

use super::codes::{CLEAR, Change, Codes};
use super::em::Em;
use super::pair::assign;
use crate::support::linalg;
use crate::support::recovery::cosines;

/// Leaves shorter than this share of the branch's longest (in |d|^2) are left alone.
const LEAST: f64 = 0.1;
/// Correlation of being on above which two branches are looked at: independent ones that are on in
/// a hundred samples of a thousand reach a tenth.
const TANGLED: f64 = 0.2;

/// Takes branches apart whose codes are correlated, two by two, where that makes them sparser.
pub(crate) fn untangle(em: &mut Em) {
    for j in 0..em.d.len() {
        let codes = Codes::of(em, j);
        em.e_steps += codes.on.nrows() as f64 / (em.data.n_samples() * em.d.len()) as f64;
        let long: Vec<Vec<usize>> =
            em.members(j).iter().map(|atoms| codes.long(atoms, LEAST)).collect();
        let mut change = Change::none(em.d[j].ncols());
        let mut done = vec![false; long.len()];
        for (k, l) in tangled(&codes) {
            if done[k] || done[l] {
                continue;
            }
            let atoms = [&long[k][..], &long[l]].concat();
            let found = codes.axes(&atoms, &[k, l]).filter(|axes| axes.sparser > CLEAR);
            let Some(axes) = found else { continue };
            (done[k], done[l]) = (true, true);
            // New atoms take the places of the old ones that they are most like.
            let old = em.d[j].select(Axis(1), &atoms);
            let new = linalg::product(old.view(), axes.t.view());
            let from = assign(&cosines(old.view(), new.view()));
            let t = axes.t.select(Axis(1), &from);
            change.set(&atoms, &t, &axes.inverse.select(Axis(0), &from));
        }
        em.transform(j, &change.t, &change.inverse);
    }
}

/// Every branch with the one that it is on with most often beyond chance, where that is often;
/// the most often first.
fn tangled(codes: &Codes) -> Vec<(usize, usize)> {
    let on = codes.on.mapv(|on| f64::from(u8::from(on)));
    let Some(used) = on.mean_axis(Axis(0)) else { return Vec::new() };
    let together = linalg::gram(on.view()) / on.nrows() as f64;
    let spread = used.mapv(|p| (p * (1.0 - p)).sqrt().max(f64::MIN_POSITIVE));
    let correlation =
        |k: usize, l: usize| (together[[k, l]] - used[k] * used[l]) / (spread[k] * spread[l]);
    let all = 0..used.len();
    let closest = all.clone().filter_map(|k| {
        let others = all.clone().filter(|&l| l != k).map(|l| (correlation(k, l), k, l));
        others.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|most| most.0 > TANGLED)
    });
    let mut pairs: Vec<_> = closest.collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    pairs.into_iter().map(|(_, k, l)| (k, l)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::data::Data;
    use crate::input::prior::OneToOne;
    use crate::learn::e_step::Posterior;
    use crate::learn::em::Schedule;
    use crate::learn::init::start;
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use std::sync::Arc;

    /// Atoms 0 and 1 become D T of what they were: one takes in half of the other, or they become
    /// sum and difference, or nothing happens.
    #[test]
    fn mixed_atoms_are_taken_apart_and_others_left_alone() {
        for (t, changes) in [
            ([[1.0, 0.0], [0.5, 1.0]], true),
            ([[1.0, 1.0], [1.0, -1.0]], true),
            ([[1.0, 0.0], [0.0, 1.0]], false),
        ] {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
            let mut draw = |_| rng.random_range(-1.0..1.0);
            let d = Array2::from_shape_fn((6, 3), &mut draw);
            let mut x = Array2::from_shape_fn((600, 3), &mut draw);
            x.mapv_inplace(|x| if rng.random_bool(0.3) { x } else { 0.0 });
            x.row_mut(0).fill(1.0);
            let data = Data::new(vec![("a".to_owned(), x.dot(&d.t()))], false).unwrap();
            let prior = Arc::new(OneToOne { n_atoms: 3 });
            let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 600, 1);
            start(&mut em, 1);
            let mut mixed = d.clone();
            let pair = d.slice(ndarray::s![.., ..2]).dot(&ndarray::arr2(&t));
            mixed.slice_mut(ndarray::s![.., ..2]).assign(&pair);
            em.d[0] = mixed.clone();
            em.s[0] = 1e-5;
            let on = |i: usize, k: usize| match (changes, k) {
                (true, 0) if t[0][1] != 0.0 => x[[i, 0]] != 0.0 || x[[i, 1]] != 0.0,
                (true, 1) => x[[i, 0]] != 0.0 || x[[i, 1]] != 0.0,
                _ => x[[i, k]] != 0.0,
            };
            let gamma = (0..600).flat_map(|i| (0..3).map(move |k| (i, k)));
            em.gamma = gamma.map(|(i, k)| f64::from(u8::from(on(i, k)))).collect();
            untangle(&mut em);
            assert_eq!(em.d[0] != mixed, changes);
            let cosines = cosines(d.view(), em.d[0].view());
            for k in 0..3 {
                let best = cosines.row(k).iter().copied().fold(0.0, f64::max);
                assert!(best > 0.995, "atom {k}: {best}");
            }
        }
    }
}
