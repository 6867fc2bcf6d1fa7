//! Tests the steps of EM against their literal formulas and the laws they promise.

#[path = "../../tests/common/mod.rs"]
pub(super) mod common;

use std::sync::Arc;

use common::{assert_close, inverse, matrix, posterior, rng};
use ndarray::{Array1, Array2};
use proptest::prelude::*;
use rand::RngExt;

use super::clean::clean;
use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::init::start;
use super::noise::{Average, update_noise};
use super::pair::repair_pairing;
use crate::input::data::Data;
use crate::input::prior::{GammaStep, Moments, OneToOne, Prior, Slab};
use crate::support::recovery::cosines;
use crate::support::synth::{Recipe, Truth};

const EM: GammaStep = GammaStep::Em { floor: 0.0 };
const LEARN: Ask = Ask { gamma: EM, learn: true, cross: false };

/// Random data of `sizes.len()` modalities; every third sample lacks one of them.
fn data(seed: u64, l: usize, sizes: &[usize], missing: bool, center: bool) -> Data {
    let mut rng = rng(seed);
    let named = sizes.iter().enumerate().map(|(j, &n)| {
        let mut y = matrix(&mut rng, l, n);
        for i in (0..l).filter(|i| missing && i % 3 == 0 && i / 3 % sizes.len() == j) {
            y.row_mut(i).fill(f64::NAN);
        }
        (format!("m{j}"), y)
    });
    Data::new(named.collect(), center).unwrap()
}

fn em<'a>(data: &'a Data, prior: &OneToOne, schedule: Schedule, block: usize) -> Em<'a> {
    let mut em = Em::new(data, Arc::new(*prior), Posterior::Exact, schedule, block, 1);
    start(&mut em, 1);
    em
}

fn log_likelihood(em: &Em) -> f64 {
    let stats = em.survey(Ask { gamma: GammaStep::Keep, ..LEARN });
    stats.modalities.iter().map(|x| x.log_likelihood).sum()
}

/// One EM step, all in the paper's letters.
#[test]
fn a_step_is_the_papers() {
    for seed in 0..20 {
        let mut random = rng(seed);
        let (l, m) = (random.random_range(3..7), random.random_range(1..4));
        let sizes = [random.random_range(2..6), random.random_range(2..6)];
        let (l, center) = (l.max(m + 1), seed % 2 == 0);
        let data = data(seed, l, &sizes, false, center);
        let prior = OneToOne { n_atoms: m };
        let mut em = em(&data, &prior, Schedule::Full, l);
        let before = (em.d.clone(), em.s.clone());
        let v = Array1::from_elem(m, em.gamma[0]);
        em.normalise = false;
        let stats = em.e_step(LEARN);
        em.m_step(&stats, &[false, false]).unwrap();
        let mut gamma = Array2::<f64>::zeros((l, m));
        for j in 0..2 {
            let (d, s) = (&before.0[j], before.1[j]);
            let y = data.modalities()[j].y();
            // With the mean as a further column whose code is one.
            let extra = usize::from(center);
            let mut u = Array2::<f64>::ones((m + extra, l));
            let mut c = Array2::<f64>::zeros((m + extra, m + extra));
            for i in 0..l {
                let post = posterior(d, s, &y.row(i).to_owned(), &v);
                for k in 0..m {
                    u[[k, i]] = post.mu[k];
                    gamma[[i, k]] += (post.cov[[k, k]] + post.mu[k].powi(2)) / 2.0;
                    for q in 0..m {
                        c[[k, q]] += post.cov[[k, q]];
                    }
                }
            }
            let expected = y.t().dot(&u.t()).dot(&inverse(&(u.dot(&u.t()) + c)).0);
            for ((n, k), &x) in em.d[j].indexed_iter() {
                assert_close(x, expected[[n, k]], 1e-6, "D");
            }
            for (n, &x) in em.offset[j].iter().enumerate().filter(|_| center) {
                assert_close(x, expected[[n, m]], 1e-6, "mean");
            }
        }
        for (found, expected) in em.gamma.iter().zip(&gamma) {
            assert_close(*found, *expected, 1e-9, "gamma");
        }
    }
}

/// The odds of switching a coefficient are a ratio of two evidences.
#[test]
fn gain_is_a_ratio_of_evidences() {
    for seed in 0..20 {
        let mut random = rng(seed);
        let (n, m, s, power) = (4, 5, 0.3, 0.7);
        let d = matrix(&mut random, n, m);
        let y = Array1::from_iter((0..n).map(|_| random.random_range(-1.0..1.0)));
        let off = 1e-30;
        for on in [off, 0.4] {
            let mut v = Array1::from_elem(m, 0.2);
            v[2] = on;
            let prepared = super::e_step::Prepared::new(d.view(), s, Posterior::Exact);
            let rows = |x: &Array1<f64>| x.clone().into_shape_with_order((1, x.len())).unwrap();
            let want = super::e_step::Want { cov: false, slopes: true };
            let answer = super::e_step::e_step(&prepared, rows(&y).view(), rows(&v).view(), want);
            let moments = Moments { v: v.as_slice().unwrap(), t: &answer.t, b: &answer.b };
            let evidence = |value: f64| {
                let mut v = v.clone();
                v[2] = value;
                posterior(&d, s, &y, &v).log_likelihood
            };
            let expected = evidence(power) - evidence(off);
            assert_close(moments.gain(2, power), expected, 1e-9, "gain");
        }
    }
}

/// The faster step in the letters of its source: gamma sqrt(sum t^2 / sum b), from S written out,
/// with what is near the floor left out of S.
#[test]
fn sharpening_follows_its_formula() {
    for seed in 0..20 {
        let data = data(seed, 6, &[3, 4], seed % 2 == 0, false);
        let (m, floor) = (5, 0.02);
        let mut em = em(&data, &OneToOne { n_atoms: m }, Schedule::Full, 6);
        let mut random = rng(seed);
        em.gamma.fill_with(|| random.random_range(0.0..0.2));
        let before = em.gamma.clone();
        em.e_step(Ask { gamma: GammaStep::Sharpen { floor }, ..LEARN });
        for i in 0..6 {
            let v = Array1::from_iter((0..m).map(|k| before[i * m + k]));
            let used = v.mapv(|v| if v > 2.0 * floor { v } else { 0.0 });
            let (mut tt, mut b) = (Array1::<f64>::zeros(m), Array1::<f64>::zeros(m));
            for (j, modality) in data.modalities().iter().enumerate() {
                if modality.present()[i] {
                    let d = &em.d[j];
                    let s = Array2::eye(d.nrows()) * em.s[j]
                        + d.dot(&Array2::from_diag(&used)).dot(&d.t());
                    let weighted = d.t().dot(&inverse(&s).0);
                    tt = tt + weighted.dot(&modality.y().row(i)).mapv(|t: f64| t * t);
                    b = b + weighted.dot(d).diag();
                }
            }
            for k in 0..m {
                let expected = (v[k] * (tt[k] / b[k]).sqrt()).max(floor);
                assert_close(em.gamma[i * m + k], expected, 1e-9, "gamma");
            }
        }
    }
}

/// Switching changes at most one coefficient each way, and towards the posterior odds.
#[test]
fn toggling_switches_what_the_odds_ask_for() {
    let prior = OneToOne { n_atoms: 4 };
    let slab = Slab { log_odds: -1.0, power: 1.0 };
    let v = [1.0, 0.0, 0.0, 1.0];
    // Coefficient 0 explains nothing, 1 and 2 would explain much, 3 does.
    let (t, b) = ([0.0, 5.0, 4.0, 3.0], [0.5, 1.0, 1.0, 0.5]);
    let mut gamma = v;
    let moments = [Some(Moments { v: &v, t: &t, b: &b }), None];
    prior.update(&mut gamma, &moments, GammaStep::Toggle(slab));
    assert_eq!(gamma, [0.0, 1.0, 0.0, 1.0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    /// Theorem 2: without normalising, no step lowers the likelihood.
    #[test]
    fn likelihood_never_falls(
        seed in 0u64..1000, n in 1usize..6, m in 1usize..6, missing: bool, center: bool,
    ) {
        let data = data(seed, 20, &[n, 3], missing, center);
        let prior = OneToOne { n_atoms: m };
        let mut em = em(&data, &prior, Schedule::Full, 20);
        em.normalise = false;
        em.s.iter_mut().for_each(|s| *s *= 0.5);
        let mut before = log_likelihood(&em);
        for _ in 0..15 {
            let stats = em.e_step(LEARN);
            em.m_step(&stats, &[false, false]).unwrap();
            let after = log_likelihood(&em);
            prop_assert!(after >= before - 1e-7 * before.abs(), "{before} -> {after}");
            before = after;
        }
    }

    /// Nor does the faster step of gamma, the dictionaries left as they are.
    #[test]
    fn sharpening_never_lowers_the_likelihood(
        seed in 0u64..1000, n in 1usize..6, m in 1usize..6, missing: bool,
    ) {
        let data = data(seed, 20, &[n, 3], missing, false);
        let mut em = em(&data, &OneToOne { n_atoms: m }, Schedule::Full, 20);
        let mut before = log_likelihood(&em);
        for _ in 0..15 {
            em.e_step(Ask { gamma: GammaStep::Sharpen { floor: 0.0 }, ..LEARN });
            let after = log_likelihood(&em);
            prop_assert!(after >= before - 1e-7 * before.abs(), "{before} -> {after}");
            before = after;
        }
    }

    /// Incremental and batch EM with one block are EM, to the last bit.
    #[test]
    fn one_batch_is_full_em(seed in 0u64..1000, l in 5usize..300) {
        let data = data(seed, l, &[4, 3], true, true);
        let prior = OneToOne { n_atoms: 2 };
        let learn = |schedule| {
            let mut em = em(&data, &prior, schedule, l);
            for _ in 0..3 {
                let stats = em.e_step(LEARN);
                em.m_step(&stats, &[false, false]).unwrap();
            }
            (em.d, em.gamma)
        };
        let full = learn(Schedule::Full);
        prop_assert_eq!(&full, &learn(Schedule::Incremental));
        prop_assert_eq!(&full, &learn(Schedule::Batch));
    }

    /// After a pass with fixed dictionaries, the blocks' sums are those of all samples.
    #[test]
    fn blocks_add_up(seed in 0u64..1000, block in 1usize..40) {
        let data = data(seed, 40, &[4, 3], true, true);
        let prior = OneToOne { n_atoms: 3 };
        let ask = Ask { gamma: GammaStep::Keep, learn: true, cross: true };
        let mut em = em(&data, &prior, Schedule::Incremental, block);
        let expected = em.survey(ask);
        let mut found = em.e_step(ask);
        for _ in 1..em.n_blocks() {
            found = em.e_step(ask);
        }
        prop_assert_eq!(found.count, 40);
        for (found, expected) in found.modalities.iter().zip(&expected.modalities) {
            prop_assert_eq!(found.count, expected.count);
            assert_close(found.log_likelihood, expected.log_likelihood, 1e-10, "likelihood");
            for (x, y) in found.c.iter().zip(&expected.c) {
                assert_close(*x, *y, 1e-10, "C");
            }
            for (x, y) in found.b.iter().zip(&expected.b) {
                assert_close(*x, *y, 1e-10, "B");
            }
        }
        let correlations = [&found, &expected].map(|stats| stats.cross[0].correlation());
        for (x, y) in correlations[0].iter().zip(&correlations[1]) {
            assert_close(*x, *y, 1e-8, "correlation");
        }
    }

    /// A modality that every sample lacks might as well not be there.
    #[test]
    fn missing_is_as_good_as_dropped(seed in 0u64..1000, l in 4usize..30) {
        let both = data(seed, l, &[4, 3], false, false);
        let prior = OneToOne { n_atoms: 3 };
        let with_second_missing = {
            let mut named: Vec<_> = Vec::new();
            for x in both.modalities() {
                named.push((x.name().to_owned(), x.y().clone()));
            }
            named[1].1.fill(f64::NAN);
            let unit = |name: &str| {
                let j = usize::from(name == "m1");
                Ok((both.modalities()[j].mean().view(), 1.0))
            };
            Data::with_scales(named, unit).unwrap()
        };
        let alone = Data::new(vec![("m0".into(), both.modalities()[0].y().clone())], false).unwrap();
        let mut two = em(&both, &prior, Schedule::Full, l);
        two.data = &with_second_missing;
        let mut one = em(&alone, &prior, Schedule::Full, l);
        one.d[0] = two.d[0].clone();
        let (a, b) = (two.e_step(LEARN), one.e_step(LEARN));
        assert_close(a.modalities[0].log_likelihood, b.modalities[0].log_likelihood, 1e-9, "ll");
        prop_assert_eq!(a.modalities[1].count, 0);
        for (x, y) in two.gamma.iter().zip(&one.gamma) {
            assert_close(*x, *y, 1e-9, "gamma");
        }
    }
}

/// The noise update stays where the likelihood is flat in s.
#[test]
fn noise_settles_where_the_slope_is_nought() {
    let data = data(3, 200, &[8], false, false);
    let prior = OneToOne { n_atoms: 2 };
    let mut em = em(&data, &prior, Schedule::Full, 200);
    for _ in 0..200 {
        let stats = em.e_step(Ask { gamma: GammaStep::Keep, ..LEARN });
        update_noise(&mut em, &stats, Average::Mean);
    }
    let stats = em.e_step(Ask { gamma: GammaStep::Keep, ..LEARN });
    let free = stats.modalities[0].free;
    // The update divides by the degrees of freedom less those of the dictionary.
    let ratio = stats.modalities[0].residual / em.s[0] / (free - 2.0 * 7.0);
    assert_close(ratio, 1.0, 1e-9, "residual per degree of freedom");
    assert!(stats.modalities[0].slope(em.s[0] * 2.0) < 0.0, "too much noise");
    assert!(stats.modalities[0].slope(em.s[0] * 0.5) > 0.0, "too little noise");
}

/// Two modalities with known dictionaries, and EM that starts at them.
fn at_the_truth() -> (Truth, Data) {
    let sizes = Recipe {
        n_features: 10,
        n_atoms: 12,
        n_samples: 400,
        sparsity: 2,
        ..Recipe::paper(&[20.0, 20.0], 1)
    };
    let truth = sizes.draw().unwrap();
    let named = truth.data.iter().enumerate().map(|(j, y)| (format!("m{j}"), y.clone()));
    let data = Data::new(named.collect(), false).unwrap();
    (truth, data)
}

/// A cycle of three columns and a swap are undone; what is right is left alone.
#[test]
fn wrong_pairs_are_found() {
    let (truth, data) = at_the_truth();
    let prior = OneToOne { n_atoms: 12 };
    for (wrong, moved) in [(vec![1, 2, 0, 4, 3, 5, 6, 7, 8, 9, 10, 11], 5), ((0..12).collect(), 0)]
    {
        let mut em = em(&data, &prior, Schedule::Full, 400);
        em.d = truth.dictionaries.clone();
        em.permute(1, &wrong);
        em.s.iter_mut().for_each(|s| *s *= 0.1);
        let mut stats = em.e_step(LEARN);
        for _ in 0..10 {
            stats = em.e_step(Ask { cross: true, ..LEARN });
        }
        assert_eq!(repair_pairing(&mut em, &stats), moved);
        assert_eq!(em.d[1], truth.dictionaries[1]);
    }
}

/// An atom that is a twin in all modalities makes room for the one that is missing, which EM
/// does not find without that.
#[test]
fn a_twin_makes_room_for_what_is_missing() {
    let (truth, data) = at_the_truth();
    let prior = OneToOne { n_atoms: 12 };
    for cleaning in [true, false] {
        let mut em = em(&data, &prior, Schedule::Full, 400);
        em.d = truth.dictionaries.clone();
        for d in &mut em.d {
            let twin = d.column(0).to_owned();
            d.column_mut(5).assign(&twin);
        }
        em.s.iter_mut().for_each(|s| *s *= 0.1);
        for step in 0..60 {
            let stats = em.e_step(LEARN);
            if cleaning && step == 10 {
                assert_eq!(clean(&mut em, &stats, false), 1);
            }
            if step > 10 {
                em.m_step(&stats, &[false, false]).unwrap();
            }
        }
        for j in 0..2 {
            let cosines = cosines(truth.dictionaries[j].view(), em.d[j].view());
            let best = cosines.row(5).fold(0.0, |a: f64, &b| a.max(b));
            assert_eq!(best > 0.95, cleaning, "modality {j}: {best}");
        }
    }
}
