//! Computes every formula in its slowest literal form, and makes small random cases.
#![allow(dead_code)] // each test file uses a part

use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub fn matrix(rng: &mut ChaCha8Rng, rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |_| rng.random_range(-1.0..1.0))
}

/// Gauss-Jordan with pivoting: inverse and determinant.
pub fn inverse(a: &Array2<f64>) -> (Array2<f64>, f64) {
    let n = a.nrows();
    let (mut a, mut inv, mut det) = (a.clone(), Array2::eye(n), 1.0);
    for c in 0..n {
        let best = (c..n).max_by(|&x, &y| a[[x, c]].abs().total_cmp(&a[[y, c]].abs())).unwrap();
        if best != c {
            for k in 0..n {
                a.swap([c, k], [best, k]);
                inv.swap([c, k], [best, k]);
            }
            det = -det;
        }
        let pivot = a[[c, c]];
        det *= pivot;
        for k in 0..n {
            a[[c, k]] /= pivot;
            inv[[c, k]] /= pivot;
        }
        for r in (0..n).filter(|&r| r != c) {
            let factor = a[[r, c]];
            for k in 0..n {
                let (x, y) = (a[[c, k]], inv[[c, k]]);
                a[[r, k]] -= factor * x;
                inv[[r, k]] -= factor * y;
            }
        }
    }
    (inv, det)
}

/// The posterior of one sample as the paper prints it.
pub struct Posterior {
    pub mu: Array1<f64>,
    pub cov: Array2<f64>,
    pub log_likelihood: f64,
    /// d log p / d s
    pub slope: f64,
}

/// Sigma = (D^T D / s + V^-1)^-1, mu = Sigma D^T y / s; p(y) = N(0, s I + D V D^T).
pub fn posterior(d: &Array2<f64>, s: f64, y: &Array1<f64>, v: &Array1<f64>) -> Posterior {
    let n = d.nrows();
    let precision = d.t().dot(d) / s + Array2::from_diag(&v.mapv(|v| 1.0 / v));
    let cov = inverse(&precision).0;
    let mu = cov.dot(&d.t().dot(y)) / s;
    let sy = Array2::eye(n) * s + d.dot(&Array2::from_diag(v)).dot(&d.t());
    let (sy_inv, det) = inverse(&sy);
    let u = sy_inv.dot(y);
    let log_likelihood =
        -0.5 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + det.ln() + y.dot(&u));
    let slope = -0.5 * (sy_inv.diag().sum() - u.dot(&u));
    Posterior { mu, cov, log_likelihood, slope }
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let scale = 1.0 + expected.abs();
    assert!((found - expected).abs() <= tolerance * scale, "{what}: {found} instead of {expected}");
}

/// Compares what a test found with a file (UPDATE_GOLDEN=1 writes it anew): words to the letter,
/// numbers to a tolerance, since instruction sets round differently.
#[track_caller]
pub fn check_golden(name: &str, found: &str, tolerance: f64) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found.lines().count(), expected.lines().count(), "{name}");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found.split(' ').count(), expected.split(' ').count(), "{expected}\n{found}");
        for (a, b) in found.split(' ').zip(expected.split(' ')) {
            match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) => {
                    let bound = tolerance * b.abs().max(1e-4);
                    assert!((a - b).abs() <= bound, "{expected}\n{found}");
                }
                _ => assert_eq!(a, b, "{expected}\n{found}"),
            }
        }
    }
}
