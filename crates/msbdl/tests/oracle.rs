//! Compares every kernel and form of the E-step with the paper's literal formulas.

mod common;

use common::{assert_close, matrix, posterior, rng};
use msbdl::learn::e_step::{Answer, Kernel, Posterior, Prepared, Want, e_step};
use ndarray::{Array1, Array2};
use proptest::prelude::*;
use rand::RngExt;

const ALL: Want = Want { cov: true, slopes: true };
const LEAN: Want = Want { cov: false, slopes: false };

/// A random case; `dead` is the share of variances that are (almost) nought.
fn case(seed: u64, n: usize, m: usize, rows: usize, dead: f64) -> [Array2<f64>; 3] {
    let mut rng = rng(seed);
    let d = matrix(&mut rng, n, m);
    let y = matrix(&mut rng, rows, n);
    let v = Array2::from_shape_fn((rows, m), |_| {
        if rng.random_bool(dead) { 1e-30 } else { rng.random_range(0.01..2.0) }
    });
    [d, y, v]
}

fn check(answer: &Answer, d: &Array2<f64>, s: f64, y: &Array2<f64>, v: &Array2<f64>) {
    let m = d.ncols();
    let mut cov = Array2::<f64>::zeros((m, m));
    for i in 0..y.nrows() {
        let (yi, vi) = (y.row(i).to_owned(), v.row(i).to_owned());
        let exact = posterior(d, s, &yi, &vi);
        cov += &exact.cov;
        let (mut vb, mut vtt) = (0.0, 0.0);
        for k in 0..m {
            let (t, b) = (answer.t[i * m + k], answer.b[i * m + k]);
            assert_close(vi[k] * t, exact.mu[k], 1e-9, "mu");
            assert_close(vi[k] - vi[k] * vi[k] * b, exact.cov[[k, k]], 1e-9, "Sigma");
            vb += vi[k] * b;
            vtt += vi[k] * t * t;
        }
        let n = d.nrows() as f64;
        let log_likelihood =
            -0.5 * (n * (2.0 * std::f64::consts::PI).ln() + answer.log_det[i] + answer.quad[i]);
        assert_close(log_likelihood, exact.log_likelihood, 1e-9, "log-likelihood");
        let slope = 0.5 * ((answer.quad[i] - vtt) - (n - vb)) / s;
        assert_close(slope, exact.slope, 1e-8, "slope");
    }
    for ((r, c), &expected) in cov.indexed_iter() {
        assert_close(answer.cov[r * m + c], expected, 1e-9, "sum of Sigma");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    /// Shapes around the lane and tile counts; sparse enough for both forms.
    #[test]
    fn posterior_is_the_papers(
        seed in 0u64..1000, n in 1usize..14, m in 1usize..14, rows in 1usize..11,
        dead in prop::sample::select(vec![0.0, 0.5, 0.9, 1.0]), s in 0.05f64..2.0,
    ) {
        let [d, y, v] = case(seed, n, m, rows, dead);
        for kernel in Kernel::available() {
            let prepared = Prepared::new(d.view(), s, Posterior::Exact).with_kernel(kernel);
            let answer = e_step(&prepared, y.view(), v.view(), ALL);
            check(&answer, &d, s, &y, &v);
            let lean = e_step(&prepared, y.view(), v.view(), LEAN);
            prop_assert!(lean.cov.is_empty());
            // The two may take different forms: equal in value, not in bits.
            for i in 0..rows * m {
                let v = v.as_slice().unwrap()[i];
                assert_close(v * lean.t[i], v * answer.t[i], 1e-9, "mu without covariance");
            }
        }
    }

    /// mu solves the same system; Sigma is the inverse of the diagonal of the precision.
    #[test]
    fn approximate_posterior_is_the_papers(
        seed in 0u64..1000, n in 1usize..9, m in 1usize..9, rows in 1usize..6,
    ) {
        let [d, y, v] = case(seed, n, m, rows, 0.0);
        let s = 0.3;
        for kernel in Kernel::available() {
            let prepared = Prepared::new(d.view(), s, Posterior::Approximate).with_kernel(kernel);
            let answer = e_step(&prepared, y.view(), v.view(), ALL);
            let mut sums = Array1::<f64>::zeros(m);
            for i in 0..rows {
                let exact = posterior(&d, s, &y.row(i).to_owned(), &v.row(i).to_owned());
                for k in 0..m {
                    let vk = v[[i, k]];
                    let sigma = 1.0 / (d.column(k).dot(&d.column(k)) / s + 1.0 / vk);
                    sums[k] += sigma;
                    assert_close(vk * answer.t[i * m + k], exact.mu[k], 1e-6, "mu");
                    assert_close(vk - vk * vk * answer.b[i * m + k], sigma, 1e-9, "Sigma");
                }
            }
            for k in 0..m {
                assert_close(answer.cov[k * m + k], sums[k], 1e-9, "sum of Sigma");
            }
        }
    }
}

/// The Gram form must be taken, and be right, far from the N-form's sizes.
#[test]
fn tall_data_and_sparse_codes() {
    for (seed, n, m, dead) in [(1, 40, 5, 0.0), (2, 12, 60, 0.95), (3, 60, 30, 0.5)] {
        let [d, y, v] = case(seed, n, m, 9, dead);
        for kernel in Kernel::available() {
            let prepared = Prepared::new(d.view(), 0.1, Posterior::Exact).with_kernel(kernel);
            check(&e_step(&prepared, y.view(), v.view(), ALL), &d, 0.1, &y, &v);
        }
    }
}
