//! Tests learning with labels against the paper's literal formulas and the laws it promises.

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis, s};
use proptest::prelude::*;
use rand::RngExt;
use rand_distr::StandardNormal;

use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::init::start;
use super::laws::common::{assert_close, inverse, matrix, rng};
use super::span::principal_axes;
use super::task::{LabelSums, Task};
use super::validate::Validator;
use crate::input::config::Preset;
use crate::input::data::Data;
use crate::input::labels::Labels;
use crate::input::prior::{GammaStep, OneToOne, Prior, PriorKind};
use crate::input::task::{TaskConfig, Validation};

const LEARN: Ask = Ask { gamma: GammaStep::Em { floor: 0.0 }, learn: true, cross: false };
const KEEP: Ask = Ask { gamma: GammaStep::Keep, ..LEARN };

/// Two modalities of `l` samples, three classes; every sample `i` with `known(i)` has a label.
fn case(seed: u64, l: usize, sizes: [usize; 2], known: impl Fn(usize) -> bool) -> (Data, Labels) {
    let mut rng = rng(seed);
    let named = sizes.iter().enumerate();
    let named = named.map(|(j, &n)| (format!("m{j}"), matrix(&mut rng, l, n))).collect();
    let labels: Vec<Option<usize>> = (0..l).map(|i| known(i).then_some(i % 3)).collect();
    (Data::new(named, false).unwrap(), Labels::classes(&labels).unwrap())
}

/// EM in its first step, with random W.
fn em<'a>(seed: u64, data: &'a Data, labels: &Labels, prior: Arc<dyn Prior>) -> Em<'a> {
    let atoms = [prior.n_atoms(0), prior.n_atoms(1)];
    let mut em = Em::new(data, prior, Posterior::Exact, Schedule::Full, data.n_samples(), seed);
    start(&mut em, seed);
    let all =
        TaskConfig { validation: Validation::Share(0.0), nu: Some(1e-9), ..TaskConfig::default() };
    let plan = all.check(data, labels, Preset::Auto, seed).unwrap();
    let mut task = Task::new(labels, &plan, &atoms);
    let mut random = rng(seed + 1000);
    task.w = atoms.iter().map(|&m| matrix(&mut random, 3, m)).collect();
    task.beta2 = vec![random.random_range(0.1..1.0), random.random_range(0.1..1.0)];
    em.task = Some(task);
    em
}

/// log N([y; h]; 0, [[s I + D V D', D V W'], [W V D', beta^2 I + W V W']])
fn joint(
    d: &Array2<f64>,
    w: &Array2<f64>,
    (s, beta2): (f64, f64),
    v: &Array1<f64>,
    yh: &Array1<f64>,
) -> f64 {
    let (n, c) = (d.nrows(), w.nrows());
    let both = ndarray::concatenate(ndarray::Axis(0), &[d.view(), w.view()]).unwrap();
    let mut cov = both.dot(&Array2::from_diag(v)).dot(&both.t());
    for k in 0..n + c {
        cov[[k, k]] += if k < n { s } else { beta2 };
    }
    let (inverse, det) = inverse(&cov);
    -0.5 * ((n + c) as f64 * std::f64::consts::TAU.ln() + det.ln() + yh.dot(&inverse.dot(yh)))
}

/// One step of EM with labels, all in the paper's letters; in every second case some samples have none.
#[test]
fn a_labelled_step_is_the_papers() {
    for seed in 0..15 {
        let mut random = rng(seed);
        let m = random.random_range(1..4);
        let sizes = [random.random_range(1..5), random.random_range(1..5)];
        let l = 7;
        let known = |i: usize| seed % 2 == 0 || ![2, 4].contains(&i);
        let (data, labels) = case(seed, l, sizes, known);
        let mut em = em(seed, &data, &labels, Arc::new(OneToOne { n_atoms: m }));
        em.normalise = false;
        let v = Array1::from_elem(m, em.gamma[0]);
        let before = (em.d.clone(), em.s.clone());
        let (w, beta2, h) = {
            let task = em.task.as_ref().unwrap();
            (task.w.clone(), task.beta2.clone(), task.h.clone())
        };
        let stats = em.e_step(LEARN);
        em.m_step(&stats, &[false, false]).unwrap();
        let mut gamma = Array2::<f64>::zeros((l, m));
        for j in 0..2 {
            let (d, s, b2) = (&before.0[j], before.1[j], beta2[j]);
            let y = data.modalities()[j].y();
            let (mut u, mut log_likelihood, mut slope) = (Array2::zeros((m, l)), 0.0, 0.0);
            let (mut c, mut c_told) = (Array2::zeros((m, m)), Array2::zeros((m, m)));
            for i in 0..l {
                // A sample without a label has no rows of W.
                let rows = if known(i) { 3 } else { 0 };
                let (w, h) = (w[j].slice(s![..rows, ..]).to_owned(), h.slice(s![i, ..rows]));
                let precision =
                    d.t().dot(d) / s + w.t().dot(&w) / b2 + Array2::from_diag(&v.mapv(|v| 1.0 / v));
                let cov = inverse(&precision).0;
                let mu = cov.dot(&(d.t().dot(&y.row(i)) / s + w.t().dot(&h) / b2));
                for k in 0..m {
                    gamma[[i, k]] += (cov[[k, k]] + mu[k].powi(2)) / 2.0;
                    for l in 0..m {
                        c[[k, l]] += cov[[k, l]] + mu[k] * mu[l];
                        c_told[[k, l]] += if known(i) { cov[[k, l]] + mu[k] * mu[l] } else { 0.0 };
                    }
                }
                u.column_mut(i).assign(&mu);
                let yh: Array1<f64> = y.row(i).iter().chain(h).copied().collect();
                let at = |s: f64| joint(d, &w, (s, b2), &v, &yh);
                log_likelihood += at(s);
                slope += (at(s * 1.0001) - at(s * 0.9999)) / (0.0002 * s);
            }
            let expected = y.t().dot(&u.t()).dot(&inverse(&c).0);
            for (found, expected) in em.d[j].iter().zip(&expected) {
                assert_close(*found, *expected, 1e-6, "D");
            }
            let told: Vec<usize> = (0..l).filter(|&i| known(i)).collect();
            let (h, u) = (h.select(Axis(0), &told), u.select(Axis(1), &told));
            let expected = h.t().dot(&u.t()).dot(&inverse(&c_told).0);
            for (found, expected) in em.task.as_ref().unwrap().w[j].iter().zip(&expected) {
                assert_close(*found, *expected, 1e-5, "W");
            }
            let found = &stats.modalities[j];
            assert_close(found.log_likelihood, log_likelihood, 1e-8, "log p(Y, H)");
            assert_close(found.slope(s), slope, 1e-4, "slope");
        }
        for (found, expected) in em.gamma.iter().zip(&gamma) {
            assert_close(*found, *expected, 1e-9, "gamma");
        }
    }
}

fn total(em: &Em) -> f64 {
    em.survey(KEEP).modalities.iter().map(|x| x.log_likelihood).sum()
}

fn rises(mut em: Em) -> Result<(), TestCaseError> {
    em.normalise = false;
    let mut before = total(&em);
    for _ in 0..12 {
        let stats = em.e_step(LEARN);
        em.m_step(&stats, &[false, false]).unwrap();
        let after = total(&em);
        prop_assert!(after >= before - 1e-7 * before.abs(), "{before} -> {after}");
        before = after;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..Default::default() })]

    /// Theorem 2 holds for log p(Y, H) too, whatever the share of samples with a label.
    #[test]
    fn likelihood_never_falls_with_labels(
        seed in 0u64..1000, n in 1usize..6, m in 1usize..6, every in 1usize..4,
    ) {
        let (data, labels) = case(seed, 24, [n, 3], |i| i < 3 || i % every == 0);
        rises(em(seed, &data, &labels, Arc::new(OneToOne { n_atoms: m })))?;
    }

    /// And for every prior.
    #[test]
    fn likelihood_never_falls_with_labels_on_trees(
        seed in 0u64..1000, n in 1usize..6, every in 1usize..4,
        kind in prop_oneof![
            Just(PriorKind::AtomToSubspace), Just(PriorKind::Hierarchical), Just(PriorKind::Tree)
        ],
    ) {
        let (data, labels) = case(seed, 24, [n, 3], |i| i < 3 || i % every == 0);
        rises(em(seed, &data, &labels, kind.on(&super::tree_laws::branches(2))))?;
    }

    /// Atoms of a branch that are turned into one another take W with them: where they share a
    /// variance, nothing else changes, nor do the sums that W is made of.
    #[test]
    fn w_turns_with_the_atoms(seed in 0u64..1000, n in 1usize..6) {
        let (data, labels) = case(seed, 24, [n, 3], |_| true);
        let prior = PriorKind::AtomToSubspace.on(&super::tree_laws::branches(2));
        let mut em = em(seed, &data, &labels, prior);
        let before = total(&em);
        principal_axes(&mut em);
        assert_close(total(&em), before, 1e-9, "log p(Y, H)");
        let stats = em.survey(KEEP);
        let mut turned = stats.modalities[1].labels.clone().unwrap();
        let t = matrix(&mut rng(seed), 6, 6);
        let told = |sums: &LabelSums, w: &Array2<f64>| (&sums.hmu * w).sum();
        let w = em.task.as_ref().unwrap().w[1].clone();
        let expected = told(&turned, &w);
        turned.transform(&inverse(&t).0);
        assert_close(told(&turned, &w.dot(&t)), expected, 1e-6, "sum of h' W mu");
    }

    /// Samples without a label add nothing to the sums for W.
    #[test]
    fn samples_without_a_label_say_nothing_of_w(seed in 0u64..1000, n in 1usize..5) {
        let known = |i: usize| i < 9 || i.is_multiple_of(2);
        let (data, labels) = case(seed, 30, [n, 2], known);
        let prior = Arc::new(OneToOne { n_atoms: 3 });
        let all = em(seed, &data, &labels, prior.clone());
        let rows: Vec<usize> = (0..30).filter(|&i| known(i)).collect();
        let few = data.select(&rows, &[0, 1]);
        let given: Vec<Option<usize>> = rows.iter().map(|&i| Some(i % 3)).collect();
        let few_labels = Labels::classes(&given).unwrap();
        let mut part = em(seed, &few, &few_labels, prior);
        part.d = all.d.clone();
        part.s = all.s.clone();
        let (all, part) = (all.survey(KEEP), part.survey(KEEP));
        for (all, part) in all.modalities.iter().zip(&part.modalities) {
            let (all, part) = (all.labels.as_ref().unwrap(), part.labels.as_ref().unwrap());
            for (x, y) in all.c.iter().zip(&part.c).chain(all.hmu.iter().zip(&part.hmu)) {
                assert_close(*x, *y, 1e-9, "sums for W");
            }
        }
    }
}

/// Codes, W and label noise are known: beta falls to that noise and no further.
#[test]
fn beta_settles_at_the_noise_of_the_labels() {
    let (l, n, m, noise) = (400, 8, 4, 0.3);
    let mut random = rng(5);
    let d = {
        let mut d = matrix(&mut random, n, m);
        crate::support::linalg::normalise_columns(&mut d);
        d
    };
    let x = Array2::from_shape_simple_fn((l, m), || random.sample::<f64, _>(StandardNormal));
    let y = x.dot(&d.t())
        + Array2::from_shape_simple_fn((l, n), || 0.05 * random.sample::<f64, _>(StandardNormal));
    let labels = case(1, l, [n, 1], |_| true).1;
    let scales = |_: &str| Ok((ndarray::ArrayView1::from(&[0.0; 8][..]), 1.0));
    let known = Data::with_scales(vec![("m0".into(), y)], scales).unwrap();
    let prior = OneToOne { n_atoms: m };
    let mut em = Em::new(&known, Arc::new(prior), Posterior::Exact, Schedule::Full, l, 1);
    (em.d, em.s) = (vec![d], vec![0.05f64.powi(2)]);
    em.gamma.fill(1.0);
    let rows: Vec<usize> = (200..l).collect();
    let config = TaskConfig { validation: Validation::Rows(rows), ..TaskConfig::default() };
    let plan = config.check(&known, &labels, Preset::Auto, 1).unwrap();
    let mut task = Task::new(&labels, &plan, &[m]);
    task.w = vec![matrix(&mut random, 3, m)];
    task.beta2 = vec![4.0];
    task.h = x.dot(&task.w[0].t())
        + Array2::from_shape_simple_fn((l, 3), || noise * random.sample::<f64, _>(StandardNormal));
    em.task = Some(task);
    let mut validator = Validator::new(&em, &plan);
    for t in 1..=300 {
        validator.look(&mut em, t);
    }
    let found = em.task.as_ref().unwrap().beta2[0].sqrt();
    assert!((0.24..0.37).contains(&found), "beta is {found} instead of {noise}");
}
