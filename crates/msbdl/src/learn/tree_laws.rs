//! Tests the tree priors against the paper's letters and the laws they promise.

use std::sync::Arc;

use super::laws::common::{assert_close, inverse, matrix, posterior, rng};
use ndarray::{Array1, Array2};
use proptest::prelude::*;
use rand::RngExt;

use super::auto::unchanged;
use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::init::start;
use crate::input::branches::{Branches, Groups};
use crate::input::data::Data;
use crate::input::prior::{GammaStep, OneToOne, Prior, PriorKind, Slab, pooling::pool};

const LEARN: Ask = Ask { gamma: GammaStep::Em { floor: 0.0 }, learn: true, cross: false };
const TREES: [PriorKind; 3] = [PriorKind::AtomToSubspace, PriorKind::Hierarchical, PriorKind::Tree];

fn data(seed: u64, l: usize, sizes: &[usize], missing: bool) -> Data {
    let mut rng = rng(seed);
    let named = sizes.iter().enumerate().map(|(j, &n)| {
        let mut y = matrix(&mut rng, l, n);
        for i in (0..l).filter(|i| missing && i % 3 == 0 && i / 3 % sizes.len() == j) {
            y.row_mut(i).fill(f64::NAN);
        }
        (format!("m{j}"), y)
    });
    Data::new(named.collect(), false).unwrap()
}

/// Three branches of one, two and three leaves; with three modalities, deeper ones of the third.
pub(super) fn branches(modalities: usize) -> Branches {
    let two = r#"[{"m0":[0],"m1":[0]},{"m0":[1],"m1":[1,3]},{"m0":[2],"m1":[2,4,5]}]"#;
    let three = r#"[{"m0":[0],"m1":[0],"m2":[{"atom":0,"under":["m1",0]}]},
        {"m0":[1],"m1":[1,3],"m2":[{"atom":2,"under":["m1",3]},1]},
        {"m0":[2],"m1":[2,4,5],"m2":[3]}]"#;
    let groups: Groups = serde_json::from_str(if modalities == 2 { two } else { three }).unwrap();
    let names = ["m0", "m1", "m2"];
    Branches::new(&groups, &names[..modalities], &[3, 6, 4][..modalities]).unwrap()
}

fn em<'a>(data: &'a Data, prior: Arc<dyn Prior>) -> Em<'a> {
    let mut em = Em::new(data, prior, Posterior::Exact, Schedule::Full, data.n_samples(), 1);
    start(&mut em, 1);
    let mut rng = rng(7);
    em.gamma.iter_mut().for_each(|gamma| *gamma *= rng.random_range(0.5..1.5));
    em
}

/// Three branches of two leaves each, which are the unit vectors: k and k + 3 under root k.
pub(super) fn with_three_branches(check: impl Fn(&mut Em)) {
    let data = data(1, 8, &[4, 6], false);
    let groups: Groups = serde_json::from_str(
        r#"[{"m0":[0],"m1":[0,3]},{"m0":[1],"m1":[1,4]},{"m0":[2],"m1":[2,5]}]"#,
    )
    .unwrap();
    let branches = Branches::new(&groups, &["m0", "m1"], &[3, 6]).unwrap();
    let prior = PriorKind::AtomToSubspace.on(&branches);
    let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 8, 1);
    em.d = vec![Array2::ones((4, 3)), Array2::eye(6)];
    em.s = vec![0.1, 0.1];
    check(&mut em);
}

/// The hierarchical prior with the paper's S matrices and 2 M_2 latents, one step.
#[test]
fn hierarchical_is_the_papers_with_doubled_latents() {
    for seed in 0..10 {
        let (l, data) = (5, data(seed, 12, &[4, 5], false));
        let branches = branches(2);
        let (m1, m2) = (3, 6);
        let mut em = em(&data, PriorKind::Hierarchical.on(&branches));
        em.normalise = false;
        let before = (em.d.clone(), em.s.clone(), em.gamma.clone());
        let stats = em.e_step(LEARN);
        em.m_step(&stats, &[false, false]).unwrap();
        let s1 = Array2::from_shape_fn((m2, m1), |(m, k)| {
            f64::from(u8::from(branches.branch_of(1)[m] == k))
        });
        let s2 = Array2::from_shape_fn((2 * m2, m2), |(r, m)| f64::from(u8::from(r % m2 == m)));
        let selectors = [&s1, &s2];
        let mut moments = [Array2::<f64>::zeros((12, m2)), Array2::zeros((12, 2 * m2))];
        for j in 0..2 {
            let (d, s, select) = (&before.0[j], before.1[j], selectors[j]);
            let wide = d.dot(&select.t());
            let mut u = Array2::<f64>::zeros((wide.ncols(), 12));
            let mut sum = Array2::<f64>::zeros((wide.ncols(), wide.ncols()));
            for i in 0..12 {
                let gamma = Array1::from(before.2[i * 2 * m2..(i + 1) * 2 * m2].to_vec());
                let v = if j == 0 { gamma.slice(ndarray::s![..m2]).to_owned() } else { gamma };
                let y = data.modalities()[j].y().row(i).to_owned();
                let post = posterior(&wide, s, &y, &v);
                sum += &post.cov;
                u.column_mut(i).assign(&post.mu);
                for m in 0..wide.ncols() {
                    moments[j][[i, m]] = post.cov[[m, m]] + post.mu[m].powi(2);
                }
            }
            let c = select.t().dot(&(u.dot(&u.t()) + sum)).dot(select);
            let b = data.modalities()[j].y().t().dot(&u.t()).dot(select);
            for (x, y) in em.d[j].iter().zip(&b.dot(&inverse(&c).0)) {
                assert_close(*x, *y, 1e-6, "D");
            }
        }
        for i in 0..l {
            for m in 0..m2 {
                let g = &em.gamma[i * 2 * m2..(i + 1) * 2 * m2];
                let g1 = 0.5 * (moments[0][[i, m]] + moments[1][[i, m]]);
                assert_close(g[m], g1, 1e-10, "g1");
                assert_close(g[m2 + m], moments[1][[i, m2 + m]], 1e-10, "g2");
            }
        }
    }
}

/// gamma_B is the mean of the second moments of the branch.
#[test]
fn atom_to_subspace_is_the_papers() {
    let data = data(3, 9, &[4, 5], false);
    let branches = branches(2);
    let mut em = em(&data, PriorKind::AtomToSubspace.on(&branches));
    let (d, s, gamma) = (em.d.clone(), em.s.clone(), em.gamma.clone());
    em.e_step(LEARN);
    for i in 0..9 {
        let mut sums = vec![(0.0, 0.0); 3];
        for j in 0..2 {
            let v: Array1<f64> = branches.branch_of(j).iter().map(|&k| gamma[i * 3 + k]).collect();
            let post = posterior(&d[j], s[j], &data.modalities()[j].y().row(i).to_owned(), &v);
            for (m, &k) in branches.branch_of(j).iter().enumerate() {
                let q = post.cov[[m, m]] + post.mu[m].powi(2);
                sums[k] = (sums[k].0 + q, sums[k].1 + 1.0);
            }
        }
        for (k, (sum, count)) in sums.into_iter().enumerate() {
            assert_close(em.gamma[i * 3 + k], sum / count, 1e-9, "gamma_B");
        }
    }
}

/// Turned inside its span, a branch has stayed where it was; a leaf that is elsewhere has not.
#[test]
fn a_round_changes_spans_or_nothing() {
    let data = data(5, 12, &[4, 8], false);
    let mut em = em(&data, PriorKind::AtomToSubspace.on(&branches(2)));
    em.s = vec![1.0, 0.01];
    let before = em.d.clone();
    assert!(unchanged(&em, &before));
    let (one, other) = (before[1].column(1), before[1].column(3));
    em.d[1].column_mut(1).assign(&(&one + &other));
    em.d[1].column_mut(3).assign(&(&one * 0.5 - other));
    assert!(unchanged(&em, &before));
    em.d[1].column_mut(3).assign(&before[1].column(5));
    assert!(!unchanged(&em, &before));
    // Where noise is strong, an atom may be anywhere.
    em.d = before.clone();
    em.d[0].column_mut(1).assign(&before[0].column(2));
    em.s = vec![1.0, 1e-4];
    assert!(unchanged(&em, &before));
    em.s = vec![1.0, 1.0];
    assert!(!unchanged(&em, &before));
}

/// sum -w (log v + q / v), and projected coordinate search for its best monotone v.
fn criterion(v: &[f64], q: &[f64], w: &[f64]) -> f64 {
    v.iter().zip(q).zip(w).map(|((v, q), w)| -w * (v.ln() + q / v)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    /// Pooling keeps the order and no feasible change of any set below a node does better.
    #[test]
    fn pooling_is_the_best_monotone_fit(seed in 0u64..10_000, n in 1usize..9) {
        let mut rng = rng(seed);
        let parent: Vec<Option<usize>> =
            (0..n).map(|i| (i > 0 && rng.random_bool(0.9)).then(|| rng.random_range(0..i))).collect();
        let q: Vec<f64> = (0..n).map(|_| rng.random_range(0.1..4.0)).collect();
        let w: Vec<f64> = (0..n).map(|_| rng.random_range(0.5..2.0)).collect();
        let v = pool(&parent, &q, &w);
        for (i, parent) in parent.iter().enumerate() {
            prop_assert!(parent.is_none_or(|p| v[i] <= v[p] * (1.0 + 1e-12)));
        }
        // Random feasible points, near and far: monotone by taking minima from the roots down.
        let best = criterion(&v, &q, &w);
        for near in [1e-3, 0.1, 1.0] {
            for _ in 0..200 {
                let mut other: Vec<f64> =
                    v.iter().map(|v| v * f64::exp(rng.random_range(-near..near))).collect();
                for i in 0..n {
                    if let Some(p) = parent[i] {
                        other[i] = other[i].min(other[p]);
                    }
                }
                prop_assert!(criterion(&other, &q, &w) <= best + 1e-9);
            }
        }
    }

    /// Without normalising, no step lowers the likelihood, whatever the prior, depth and holes.
    #[test]
    fn likelihood_never_falls(seed in 0u64..1000, kind in 0usize..3, modalities in 2usize..4, missing: bool) {
        let data = data(seed, 20, &[3, 4, 5][..modalities], missing);
        let mut em = em(&data, TREES[kind].on(&branches(modalities)));
        if TREES[kind] == PriorKind::Tree {
            em.level(0.3);
        }
        em.normalise = false;
        let log_likelihood = |em: &Em| -> f64 {
            let stats = em.survey(Ask { gamma: GammaStep::Keep, ..LEARN });
            stats.modalities.iter().map(|x| x.log_likelihood).sum()
        };
        let mut before = log_likelihood(&em);
        for step in 0..24 {
            // The faster step of gamma promises it for fixed dictionaries only.
            if step % 2 == 0 {
                let stats = em.e_step(LEARN);
                em.m_step(&stats, &vec![false; modalities]).unwrap();
            } else {
                em.e_step(Ask { gamma: GammaStep::Sharpen { floor: 0.0 }, ..LEARN });
            }
            let after = log_likelihood(&em);
            prop_assert!(after >= before - 1e-7 * before.abs(), "{before} -> {after}");
            before = after;
        }
    }

    /// With one leaf each, atom-to-subspace is one-to-one, to the last bit.
    #[test]
    fn single_leaves_are_one_to_one(seed in 0u64..1000) {
        let data = data(seed, 15, &[4, 3], true);
        let slab = Slab { log_odds: -1.0, power: 0.4 };
        let learn = |prior: Arc<dyn Prior>| {
            let mut em = em(&data, prior);
            let sharpen = GammaStep::Sharpen { floor: 1e-3 };
            for gamma in [LEARN.gamma, sharpen, GammaStep::Toggle(slab)] {
                let stats = em.e_step(Ask { gamma, ..LEARN });
                em.m_step(&stats, &[false, false]).unwrap();
            }
            (em.d, em.gamma)
        };
        let tied = PriorKind::AtomToSubspace.on(&Branches::balanced(0, 3, &[1, 1]));
        prop_assert_eq!(learn(tied), learn(Arc::new(OneToOne { n_atoms: 3 })));
    }

    /// Exchanging the leaves of a branch exchanges their columns and nothing else.
    #[test]
    fn order_of_leaves_does_not_matter(seed in 0u64..1000, kind in 0usize..3) {
        let data = data(seed, 15, &[4, 5], false);
        let prior = TREES[kind].on(&branches(2));
        let from = [0, 3, 5, 1, 4, 2];
        let learn = |swap: bool| {
            let mut em = em(&data, prior.clone());
            em.level(0.3);
            if swap {
                em.permute(1, &from);
            }
            for _ in 0..3 {
                let stats = em.e_step(LEARN);
                em.m_step(&stats, &[false, false]).unwrap();
            }
            if swap {
                em.permute(1, &from);
            }
            em.d
        };
        for (a, b) in learn(false).iter().zip(&learn(true)) {
            for (x, y) in a.iter().zip(b) {
                assert_close(*x, *y, 1e-8, "D");
            }
        }
    }
}

/// A branch comes on with those leaves that explain something, and goes as a whole.
#[test]
fn leaves_switch_under_their_roots() {
    use crate::input::prior::Moments;
    let branches = branches(2);
    let slab = Slab { log_odds: -1.0, power: 1.0 };
    let zeros = [0.0; 6];
    for kind in [PriorKind::Tree, PriorKind::Hierarchical] {
        let prior = kind.on(&branches);
        let mut gamma = vec![0.0; prior.n_gamma()];
        // Root 1 and its leaf 3 would explain much, leaf 1 nothing.
        let (t1, b1) = ([0.0, 5.0, 0.0], [1.0; 3]);
        let (t2, b2) = ([0.0, 0.0, 0.0, 4.0, 0.0, 0.0], [1.0; 6]);
        let moments = [
            Some(Moments { v: &zeros[..3], t: &t1, b: &b1 }),
            Some(Moments { v: &zeros, t: &t2, b: &b2 }),
        ];
        prior.update(&mut gamma, &moments, GammaStep::Toggle(slab));
        let (mut roots, mut leaves) = (vec![0.0; 3], vec![0.0; 6]);
        prior.variances(&gamma, 0, &mut roots);
        prior.variances(&gamma, 1, &mut leaves);
        let on = |v: &[f64]| v.iter().map(|v| *v > 0.0).collect::<Vec<_>>();
        assert_eq!(on(&roots), [false, true, false], "{kind:?}");
        assert_eq!(on(&leaves), [false, false, false, true, false, false], "{kind:?}");
        // Nothing speaks for it any more: the whole branch goes.
        let b1 = [0.5; 3];
        let nothing = [
            Some(Moments { v: &roots, t: &zeros[..3], b: &b1 }),
            Some(Moments { v: &leaves, t: &zeros, b: &[0.5; 6] }),
        ];
        prior.update(&mut gamma, &nothing, GammaStep::Toggle(slab));
        assert!(gamma.iter().all(|gamma| *gamma == 0.0), "{kind:?}: {gamma:?}");
    }
}
