//! Tells the leaves of a branch apart where they switch on and off, and says where they do not.
//!
//! Leaves that are always on together can be turned into one another without changing anything;
//! only their span is known. Leaves that switch on and off independently leave coefficients
//! that are often nought along the true atoms and along no others, so once the coefficients are
//! made uncorrelated, the right rotation is the one under which they look most like
//! "nought with some probability, Gaussian otherwise".

use ndarray::{Array2, Axis};

use super::e_step::{Posterior, Want, e_step};
use super::em::Em;
use crate::support::linalg;

/// Samples that are looked at.
const SURVEY: usize = 4000;
/// Leaves shorter than this share of the branch's longest (in |d|^2) are left alone.
const LEAST: f64 = 0.02;
/// Samples per leaf that a branch must have for its leaves to be told apart.
const ENOUGH: usize = 10;
/// Angles tried in a plane, and rounds over all planes.
const ANGLES: usize = 60;
const SWEEPS: usize = 4;
/// Probabilities of being on that are tried.
const ON: [f64; 4] = [0.3, 0.5, 0.7, 0.9];

/// Log-likelihood that switching must gain over always being on for atoms to be identified: leaves
/// that are always on gain up to 8 by chance, leaves that are on half of the time 45 and more.
const CLEAR: f64 = 15.0;

/// Turns the leaves of every branch to where they switch on and off most clearly; whether that
/// is clear enough to call the atoms identified, per branch.
pub(crate) fn separate(em: &mut Em) -> Vec<bool> {
    let mut identified = vec![true; em.prior.n_branches()];
    for j in 0..em.d.len() {
        let gains = separate_in(em, j);
        for ((identified, gain), atoms) in identified.iter_mut().zip(gains).zip(em.members(j)) {
            *identified &= atoms.len() < 2 || gain > CLEAR;
        }
    }
    identified
}

fn separate_in(em: &mut Em, j: usize) -> Vec<f64> {
    let members = em.members(j);
    let mut gains = vec![0.0; members.len()];
    if members.iter().all(|atoms| atoms.len() < 2) {
        return gains;
    }
    let (mu, branch_on) = codes(em, j);
    let m = em.d[j].ncols();
    let (mut t, mut inverse) = (Array2::<f64>::eye(m), Array2::<f64>::eye(m));
    let length = em.d[j].map_axis(Axis(0), |d| d.dot(&d));
    for (k, atoms) in members.iter().enumerate() {
        let longest = atoms.iter().fold(0.0, |a: f64, &m| a.max(length[m]));
        let atoms: Vec<usize> =
            atoms.iter().copied().filter(|&m| length[m] > LEAST * longest).collect();
        let rows: Vec<usize> = (0..mu.nrows()).filter(|&i| branch_on[[i, k]]).collect();
        if atoms.len() < 2 || rows.len() < ENOUGH * atoms.len() {
            continue;
        }
        let x = mu.select(Axis(0), &rows).select(Axis(1), &atoms);
        let energy = length[atoms[0]] * x.column(0).dot(&x.column(0)) / rows.len() as f64;
        // Made uncorrelated on some hundred samples, coefficients are off by a tenth.
        let noise = (em.s[j] / energy).clamp(0.01, 0.5);
        let Some(turned) = Turned::of(&x, noise) else { continue };
        gains[k] = turned.gain;
        for (row, &a) in atoms.iter().enumerate() {
            for (column, &b) in atoms.iter().enumerate() {
                t[[a, b]] = turned.t[[row, column]];
                inverse[[a, b]] = turned.inverse[[row, column]];
            }
        }
    }
    em.transform(j, &t, &inverse);
    gains
}

/// Posterior means of modality `j` for some samples, and which branches they use.
fn codes(em: &Em, j: usize) -> (Array2<f64>, Array2<bool>) {
    let modality = &em.data.modalities()[j];
    let (k, m) = (em.prior.n_gamma(), em.d[j].ncols());
    let there = |row: &usize| modality.present()[em.sample(*row)];
    let rows: Vec<usize> = em.some_rows(SURVEY).into_iter().filter(there).collect();
    let samples: Vec<usize> = rows.iter().map(|&row| em.sample(row)).collect();
    let y = modality.y().select(Axis(0), &samples) - &em.offset[j];
    let mut v = Array2::zeros((rows.len(), m));
    let mut on = Array2::from_elem((rows.len(), em.prior.n_branches()), false);
    let mut branches = vec![0.0; em.prior.n_branches()];
    for (i, &row) in rows.iter().enumerate() {
        let gamma = &em.gamma[row * k..(row + 1) * k];
        // A freshly made array is contiguous, so the slice is always there.
        em.prior.variances(gamma, j, v.row_mut(i).as_slice_mut().unwrap_or(&mut []));
        em.prior.branch_variances(gamma, &mut branches);
        on.row_mut(i).iter_mut().zip(&branches).for_each(|(on, v)| *on = *v > 0.0);
    }
    let prepared = em.prepared(Posterior::Exact);
    let want = Want { cov: false, slopes: false };
    let answer = e_step(&prepared[j], y.view(), v.view(), want);
    v.iter_mut().zip(answer.t.iter()).for_each(|(v, t)| *v *= t);
    (v, on)
}

/// New leaves D T of a branch.
struct Turned {
    t: Array2<f64>,
    inverse: Array2<f64>,
    gain: f64,
}

impl Turned {
    /// `x` are the coefficients, a row a sample; `noise` is a share of their variance.
    fn of(x: &Array2<f64>, noise: f64) -> Option<Self> {
        let (n, r) = x.dim();
        let (values, axes) = linalg::eigen((linalg::gram(x.view()) / n as f64).view())?;
        if values[r - 1] <= 1e-9 * values[0] {
            return None;
        }
        // z = x E V^-1/2 has unit covariance, so D x = (D E V^1/2) z.
        let whiten = |power: f64| {
            Array2::from_shape_fn((r, r), |(i, k)| axes[[i, k]] * values[k].powf(power))
        };
        let mut z = linalg::product(x.view(), whiten(-0.5).view());
        let mut q = Array2::<f64>::eye(r);
        for _ in 0..SWEEPS {
            for a in 0..r {
                for b in 0..a {
                    turn_plane(&mut z, &mut q, a, b, noise);
                }
            }
        }
        let score = |p: f64| z.iter().map(|&z| log_density(z, p, noise)).sum::<f64>();
        let best = ON.into_iter().map(score).fold(f64::NEG_INFINITY, f64::max);
        let gain = best - score(1.0);
        let t = linalg::product(whiten(0.5).view(), q.view());
        let inverse = linalg::product(q.t(), whiten(-0.5).t());
        Some(Turned { t, inverse, gain })
    }
}

/// Turns columns a and b of `z` by the best of some angles.
fn turn_plane(z: &mut Array2<f64>, q: &mut Array2<f64>, a: usize, b: usize, noise: f64) {
    let (left, right) = (z.column(a).to_owned(), z.column(b).to_owned());
    let score = |angle: f64| {
        let (sin, cos) = angle.sin_cos();
        let each = left.iter().zip(&right).map(|(l, r)| {
            log_density(cos * l + sin * r, 0.5, noise) + log_density(cos * r - sin * l, 0.5, noise)
        });
        each.sum::<f64>()
    };
    let step = std::f64::consts::FRAC_PI_2 / ANGLES as f64;
    let best = (0..ANGLES).map(|i| i as f64 * step).max_by(|x, y| score(*x).total_cmp(&score(*y)));
    let (sin, cos) = best.unwrap_or(0.0).sin_cos();
    for matrix in [z, q] {
        for mut row in matrix.rows_mut() {
            let (l, r) = (row[a], row[b]);
            (row[a], row[b]) = (cos * l + sin * r, cos * r - sin * l);
        }
    }
}

/// log p(z) of a coefficient of unit variance that is on with probability `p`.
fn log_density(z: f64, p: f64, noise: f64) -> f64 {
    let normal = |v: f64| (-0.5 * z * z / v).exp() / v.sqrt();
    (p * normal(1.0 / p + noise) + (1.0 - p) * normal(noise) + f64::MIN_POSITIVE).ln()
}
