//! Finds the axes along which coefficients are most often nought.
//!
//! Coefficients that switch on and off independently are often nought along the true axes and
//! along no others. So they are made uncorrelated, turned to where they look most like "nought
//! with some probability, Gaussian otherwise", and then each axis is freed of what it still has
//! of the others: some hundred samples leave correlations of a tenth by chance.

use std::ops::Range;

use ndarray::{Array1, Array2};

use crate::support::linalg;
use crate::support::logs::sum_of_logs;

/// Steps to a right angle, and rounds over all planes.
const ANGLES: i32 = 60;
const SWEEPS: usize = 4;
/// Shares of one axis in another that are tried: multiples of a step, in both directions.
const SHARES: (i32, f64) = (20, 0.025);
/// Every so many steps are tried first, then those around the best: likelihoods are as wide as the
/// noise of the coefficients, a tenth at least.
const COARSE: i32 = 4;
/// Probabilities of being on that are tried.
const ON: [f64; 4] = [0.3, 0.5, 0.7, 0.9];

/// New atoms D T for old ones, and what speaks for them.
pub(crate) struct Axes {
    pub t: Array2<f64>,
    pub inverse: Array2<f64>,
    /// Log-likelihood that switching gains over always being on.
    pub switching: f64,
    /// Log-likelihood that the new coefficients gain over the old ones, both switching.
    pub sparser: f64,
}

impl Axes {
    /// `x` are coefficients, a row a sample; `noise` is a share of their variance. New ones have
    /// the variance `power`.
    pub fn of(x: &Array2<f64>, noise: f64, power: f64) -> Option<Self> {
        let (n, r) = x.dim();
        let (values, axes) = linalg::eigen((linalg::gram(x.view()) / n as f64).view())?;
        if values[r - 1] <= 1e-9 * values[0] {
            return None;
        }
        // z = x E V^-1/2 has unit covariance, so D x = (D E V^1/2) z.
        let whiten = |power: f64| {
            Array2::from_shape_fn((r, r), |(i, k)| axes[[i, k]] * values[k].powf(power))
        };
        let z = linalg::product(x.view(), whiten(-0.5).view());
        let (t, inverse) = (whiten(0.5), whiten(-0.5).reversed_axes());
        let mut turned = Turned { z, t, inverse, noise };
        let always = log_density(turned.z.iter().copied(), 1.0, noise);
        let pairs = |a: usize| (0..r).filter(move |&b| b != a).map(move |b| (a, b));
        sweep(|| {
            let planes = (0..r).flat_map(pairs).filter(|(a, b)| b < a);
            // A single plane has been seen from all sides.
            planes.fold(false, |moved, (a, b)| turned.turn(a, b) || moved) && r > 2
        });
        sweep(|| (0..r).flat_map(pairs).fold(false, |moved, (a, b)| turned.shear(a, b) || moved));
        let score = |z: &Array2<f64>| -> f64 {
            z.columns().into_iter().map(|z| sparseness(&z.to_owned(), noise)).sum()
        };
        let best = score(&turned.z);
        // Densities of x and of z differ by the volume.
        let volume: f64 = values.iter().map(|value| 0.5 * n as f64 * value.ln()).sum();
        let (switching, sparser) = (best - always, best - volume - score(x));
        let (mut t, mut inverse) = (turned.t, turned.inverse);
        for (k, z) in turned.z.columns().into_iter().enumerate() {
            let size = (z.dot(&z) / n as f64 / power).sqrt();
            t.column_mut(k).mapv_inplace(|t| t * size);
            inverse.row_mut(k).mapv_inplace(|t| t / size);
        }
        Some(Axes { t, inverse, switching, sparser })
    }
}

/// Repeats what moves axes until it moves none, but not for ever.
fn sweep(mut moves: impl FnMut() -> bool) {
    for _ in 0..SWEEPS {
        if !moves() {
            break;
        }
    }
}

/// Coefficients on the way, and how they are made of the old ones.
struct Turned {
    z: Array2<f64>,
    t: Array2<f64>,
    inverse: Array2<f64>,
    noise: f64,
}

impl Turned {
    /// Turns axes a and b by the best of some angles; whether that is another than nought.
    fn turn(&mut self, a: usize, b: usize) -> bool {
        let (left, right) = (self.z.column(a).to_owned(), self.z.column(b).to_owned());
        let score = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            let both = left.iter().zip(&right);
            let turned = both.flat_map(|(l, r)| [cos * l + sin * r, cos * r - sin * l]);
            log_density(turned, 0.5, self.noise)
        };
        let step = std::f64::consts::FRAC_PI_2 / f64::from(ANGLES);
        // Beyond a right angle the axes come again, exchanged.
        let best = best_step(0..ANGLES, |i| score(f64::from(i) * step)).rem_euclid(ANGLES);
        let (sin, cos) = (f64::from(best) * step).sin_cos();
        let inverse = self.inverse.view_mut().reversed_axes();
        for mut matrix in [self.z.view_mut(), self.t.view_mut(), inverse] {
            for mut row in matrix.rows_mut() {
                let (l, r) = (row[a], row[b]);
                (row[a], row[b]) = (cos * l + sin * r, cos * r - sin * l);
            }
        }
        best != 0
    }

    /// Moves the best of some shares of atom b into atom a: d_a + e d_b, x_b - e x_a; whether that is
    /// another than nought.
    fn shear(&mut self, a: usize, b: usize) -> bool {
        let (from, of) = (self.z.column(a).to_owned(), self.z.column(b).to_owned());
        let score = |share: f64| sparseness(&(&of - &(&from * share)), self.noise);
        let best = best_step(-SHARES.0..SHARES.0 + 1, |i| score(f64::from(i) * SHARES.1));
        let share = f64::from(best) * SHARES.1;
        self.z.column_mut(b).scaled_add(-share, &from);
        let moved = self.t.column(b).to_owned();
        self.t.column_mut(a).scaled_add(share, &moved);
        let moved = self.inverse.row(a).to_owned();
        self.inverse.row_mut(b).scaled_add(-share, &moved);
        share != 0.0
    }
}

/// The step with the largest score, looked for among some steps and then around the best of those.
fn best_step(steps: Range<i32>, score: impl Fn(i32) -> f64) -> i32 {
    let best = |steps: &mut dyn Iterator<Item = i32>| {
        let scored = steps.map(|i| (i, score(i)));
        scored.max_by(|x, y| x.1.total_cmp(&y.1)).map_or(0, |x| x.0)
    };
    let near = best(&mut steps.step_by(COARSE as usize));
    best(&mut (near - COARSE + 1..near + COARSE))
}

/// Log-likelihood of coefficients that switch, under the best of some probabilities.
fn sparseness(x: &Array1<f64>, noise: f64) -> f64 {
    let size = (x.dot(x) / x.len() as f64).sqrt().max(f64::MIN_POSITIVE);
    let score = |p: f64| log_density(x.iter().map(|x| x / size), p, noise);
    let best = ON.into_iter().map(score).fold(f64::NEG_INFINITY, f64::max);
    best - x.len() as f64 * size.ln()
}

/// log p(z) of coefficients of unit variance that are on with probability `p`.
fn log_density(z: impl Iterator<Item = f64>, p: f64, noise: f64) -> f64 {
    let on = 1.0 / p + noise;
    // log(p N(z; on) + (1 - p) N(z; off)) = log(p N(z; on)) + log(1 + ratio exp(-sharper z^2)), and
    // the second logarithms can be taken of products.
    let (ratio, sharper) = ((1.0 - p) / p * (on / noise).sqrt(), 0.5 / noise - 0.5 / on);
    let (mut count, mut square) = (0.0, 0.0);
    let factors = z.map(|z| {
        count += 1.0;
        square += z * z;
        1.0 + ratio * (-sharper * z * z).exp()
    });
    let off = sum_of_logs(factors);
    off + count * (p / on.sqrt()).ln() - 0.5 * square / on
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    fn mixed(seed: u64, on: f64) -> (Array2<f64>, Array2<f64>) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mix = Array2::from_shape_fn((3, 3), |(i, k)| {
            f64::from(u8::from(i == k)) + rng.random_range(-0.6..0.6)
        });
        let sources = Array2::from_shape_fn((300, 3), |_| match rng.random_bool(on) {
            true => StandardNormal.sample(&mut rng),
            false => 0.0,
        });
        (sources.dot(&mix.t()), mix)
    }

    #[test]
    fn densities_are_those_of_the_mixture() {
        let (p, noise, z): (f64, f64, _) = (0.3, 0.02, [0.0, 0.1, -0.4, 3.0, 30.0]);
        let normal = |z: f64, v: f64| (-0.5 * z * z / v).exp() / v.sqrt();
        let each = z.map(|z| p * normal(z, 1.0 / p + noise) + (1.0 - p) * normal(z, noise));
        let expected: f64 = each.iter().map(|x| x.ln()).sum();
        assert!((log_density(z.into_iter(), p, noise) - expected).abs() < 1e-10 * expected.abs());
    }

    #[test]
    fn switching_axes_are_found() {
        for seed in 0..5 {
            let (x, mix) = mixed(seed, 0.5);
            let found = Axes::of(&x, 0.01, 2.0).unwrap();
            let identity = found.t.dot(&found.inverse) - Array2::<f64>::eye(3);
            assert!(identity.iter().all(|x| x.abs() < 1e-9), "T times its inverse");
            let z = x.dot(&found.inverse.t());
            for z in z.columns() {
                assert!((z.dot(&z) / 300.0 - 2.0).abs() < 1e-9, "the variance asked for");
            }
            // Column k of T is a column of the mixing matrix up to size.
            let cosines = crate::support::recovery::cosines(mix.view(), found.t.view());
            for cosine in cosines.rows() {
                let best = cosine.iter().fold(0.0, |a: f64, &b| a.max(b));
                assert!(best > 0.99, "seed {seed}: {best}");
            }
            assert!(found.switching > 50.0 && found.sparser > 15.0, "seed {seed}");
        }
    }

    #[test]
    fn what_is_always_on_has_no_axes() {
        for seed in 0..5 {
            let (x, _) = mixed(seed, 1.0);
            assert!(Axes::of(&x, 0.01, 1.0).unwrap().switching < 15.0, "seed {seed}");
        }
    }
}
