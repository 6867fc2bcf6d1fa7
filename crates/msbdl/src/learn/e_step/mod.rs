//! Computes the posterior of the codes of a set of samples in one modality, given variances.
//!
//! What is handed back, for every kernel and prior, are two numbers per coefficient,
//!     t = d^T S^-1 y   and   b = d^T S^-1 d,   S = s I + D V D^T,
//! from which mu = v t and Sigma_mm = v - v^2 b, and per sample y^T S^-1 y and log|S|,
//! from which tr S^-1 = (N - sum v b)/s and |S^-1 y|^2 = (y^T S^-1 y - sum v t^2)/s.

// Indices say which tile, lane or atom is meant; iterators would hide it.
#![allow(clippy::needless_range_loop)]

mod approximate;
mod blocked;
mod gram_form;
mod kernel;
mod lanes;
mod m_form;
mod n_form;
mod pairs;
mod panel;
mod shared;
mod slopes;
mod sums;
#[cfg(test)]
mod twins;

pub use kernel::Kernel;
use std::sync::OnceLock;

use kernel::{Form, run};
use ndarray::{Array1, Array2, ArrayView2, s};
use serde::{Deserialize, Serialize};

use crate::support::buffer::Buffer;
use crate::support::linalg;

/// Below this share of the noise a variance changes nothing that f64 could show.
const ALIVE: f64 = 1e-13;

/// From this size on, the Gram matrices of several samples side by side leave the cache.
const LARGE: usize = 200;
/// The same for the M-form, whose matrix has its inverse beside it.
const M_LARGE: usize = 150;

/// How the posterior of a sample is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Posterior {
    /// Exact mean and covariance.
    Exact,
    /// Mean by conjugate gradients, diagonal covariance (MSBDL-2 and MSBDL-4).
    Approximate,
}

/// One modality's dictionary, prepared for the E-step.
pub struct Prepared {
    d: Array2<f64>,
    s: f64,
    offset: Vec<f64>,
    gram: Array2<f64>,
    /// For the N-form; made when it is first used.
    products: OnceLock<Vec<f64>>,
    kernel: Kernel,
    posterior: Posterior,
}

impl Prepared {
    /// `d` is N x M, `s` the noise variance.
    pub fn new(d: ArrayView2<f64>, s: f64, posterior: Posterior) -> Self {
        Prepared {
            d: d.to_owned(),
            s,
            offset: vec![0.0; d.nrows()],
            gram: padded_gram(d),
            products: OnceLock::new(),
            kernel: Kernel::best(),
            posterior,
        }
    }

    pub fn with_kernel(mut self, kernel: Kernel) -> Self {
        // A kernel that the processor lacks would be undefined behaviour.
        if Kernel::available().contains(&kernel) {
            self.kernel = kernel;
        }
        self
    }

    /// What is to be taken off y before the E-step.
    pub(crate) fn with_offset(mut self, offset: &Array1<f64>) -> Self {
        self.offset.iter_mut().zip(offset).for_each(|(to, x)| *to = *x);
        self
    }

    pub(crate) fn offset(&self) -> &[f64] {
        &self.offset
    }

    pub(crate) fn s(&self) -> f64 {
        self.s
    }

    pub(crate) fn d(&self) -> ArrayView2<'_, f64> {
        self.d.view()
    }
}

/// What the E-step says of a set of samples; rows are samples.
#[derive(Debug, Default)]
pub struct Answer {
    /// d^T S^-1 y, rows x M.
    pub t: Buffer,
    /// d^T S^-1 d, rows x M; without `Want::slopes` both may be nought where v is.
    pub b: Buffer,
    /// y^T S^-1 y
    pub quad: Buffer,
    /// log|S|
    pub log_det: Buffer,
    /// Sum of Sigma over the samples, M x M; empty if not asked for.
    pub cov: Buffer,
}

/// What an E-step is to bring beside t and b of the atoms in use.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// The sum of Sigma.
    pub cov: bool,
    /// t and b of atoms whose variance is nought, too.
    pub slopes: bool,
}

/// Runs the E-step of one modality: `y` rows x N, `v` rows x M, both in standard layout.
pub fn e_step(dictionary: &Prepared, y: ArrayView2<f64>, v: ArrayView2<f64>, want: Want) -> Answer {
    let (rows, m) = v.dim();
    // Every form writes all of these, but for the Gram form without slopes.
    let mut out = Answer {
        t: Buffer::stale(rows * m),
        b: Buffer::stale(rows * m),
        quad: Buffer::stale(rows),
        log_det: Buffer::stale(rows),
        cov: Buffer::zeros(if want.cov { m * m } else { 0 }),
    };
    let mut task = Task {
        d: dictionary.d.view(),
        s: dictionary.s,
        gram: dictionary.gram.view(),
        products: &dictionary.products,
        y,
        v,
        want,
        projection: Buffer::default(),
    };
    if dictionary.posterior == Posterior::Approximate {
        let all: Vec<usize> = (0..rows).collect();
        run(dictionary.kernel, Form::Approximate, &task, &all, &mut out);
        return out;
    }
    if task.shares_variances() {
        shared::run(&task, &mut out);
        return out;
    }
    let split = task.split_by_cost();
    if task.n() <= dictionary.kernel.most_features() {
        run(dictionary.kernel, Form::N, &task, &split.by_features, &mut out);
    } else {
        blocked::run(&task, &split.by_features, &mut out);
    }
    for &row in split.by_used_atoms.iter().filter(|_| !want.slopes) {
        out.t[row * m..(row + 1) * m].fill(0.0);
        out.b[row * m..(row + 1) * m].fill(0.0);
    }
    if !(split.by_used_atoms.is_empty() && split.by_atoms.is_empty()) {
        task.project();
        run(dictionary.kernel, Form::Gram, &task, &split.by_used_atoms, &mut out);
        run(dictionary.kernel, Form::M, &task, &split.by_atoms, &mut out);
    }
    out
}

/// The inputs of a kernel.
struct Task<'a> {
    d: ArrayView2<'a, f64>,
    s: f64,
    gram: ArrayView2<'a, f64>,
    /// Of the rows of D, for the N-form; empty if they are many.
    products: &'a OnceLock<Vec<f64>>,
    y: ArrayView2<'a, f64>,
    v: ArrayView2<'a, f64>,
    want: Want,
    /// Y D, rows x M; only for the Gram and M-forms.
    projection: Buffer,
}

impl Task<'_> {
    fn n(&self) -> usize {
        self.d.nrows()
    }

    fn m(&self) -> usize {
        self.d.ncols()
    }

    fn y_row(&self, row: usize) -> &[f64] {
        contiguous(&self.y, row)
    }

    fn v_row(&self, row: usize) -> &[f64] {
        contiguous(&self.v, row)
    }

    /// G, with more columns than there are atoms.
    fn gram_row(&self, atom: usize) -> &[f64] {
        contiguous(&self.gram, atom)
    }

    /// |d|^2 of an atom.
    fn square_of(&self, atom: usize) -> f64 {
        self.gram[[atom, atom]]
    }

    fn projection_row(&self, row: usize) -> &[f64] {
        &self.projection[row * self.m()..(row + 1) * self.m()]
    }

    fn products(&self) -> &[f64] {
        self.products.get_or_init(|| pairs::products(self.d))
    }

    fn project(&mut self) {
        self.projection = Buffer::stale(self.v.len());
        linalg::set_product(self.projection.rows_mut(self.m()), self.y, self.d);
    }

    fn yy(&self, row: usize) -> f64 {
        self.y_row(row).iter().map(|x| x * x).sum()
    }

    /// The atoms that a sample uses.
    fn active_into(&self, row: usize, active: &mut Vec<usize>) {
        let (least, v) = (ALIVE * self.s, self.v_row(row));
        // Written always and kept if wanted: nothing to be guessed wrong.
        active.resize(v.len() + 1, 0);
        let mut count = 0;
        for (k, v) in v.iter().enumerate() {
            active[count] = k;
            count += usize::from(*v > least);
        }
        active.truncate(count);
    }

    fn n_active(&self, row: usize) -> usize {
        let least = ALIVE * self.s;
        self.v_row(row).iter().map(|v| usize::from(*v > least)).sum()
    }

    /// Samples by the form that takes the least time, in multiplications of the N-form; those for
    /// the Gram form by the number of atoms in use.
    fn split_by_cost(&self) -> Split {
        /// Short rows keep the M-form below the speed of the N-form.
        const SHORT: f64 = 1.15;
        let (n, m) = (self.n() as f64, self.m() as f64);
        let cov = f64::from(u8::from(self.want.cov));
        let n_form = n * n * m + n * n * n / 6.0 + cov * n * m * m / 2.0;
        let m_form = SHORT * (m * m * m * (2.0 + cov) / 6.0 + 3.0 * m * m) + n * m;
        let by_atoms = m_form < n_form && self.m() < M_LARGE;
        let gram_form = |k: usize| {
            let k = k as f64;
            // Fitted to times: gathering and scattering move single numbers, so k^2 weighs more
            // than its multiplications.
            let slopes = if self.want.slopes { 0.6 * m * k * k + 6.0 * m * k } else { 0.0 };
            let factor = k * k * k * (2.0 + cov) / 6.0 + (12.0 + 13.0 * cov) * k * k + 600.0 * k;
            let leaves_cache = if k < LARGE as f64 { 1.0 } else { 2.5 };
            (factor + 1.8 * n * m + slopes) * leaves_cache
        };
        let other = if by_atoms && !self.want.slopes { m_form } else { n_form };
        let most = (0..=self.m()).take_while(|&k| gram_form(k) < other).count();
        let (mut sparse, mut split) = (vec![Vec::new(); most], Split::default());
        for row in 0..self.v.nrows() {
            let dense = match by_atoms && self.suits_m_form(row) {
                true => &mut split.by_atoms,
                false => &mut split.by_features,
            };
            sparse.get_mut(self.n_active(row)).unwrap_or(dense).push(row);
        }
        split.by_used_atoms = sparse.concat();
        split
    }

    /// Whether what the M-form is asked for is exact: slopes are divided by variances there.
    fn suits_m_form(&self, row: usize) -> bool {
        /// The least variance, as a share of the noise, that slopes of ten digits ask for.
        const SHARP: f64 = 1e-6;
        let sharp = |v: &f64| *v > SHARP * self.s;
        !self.want.slopes || self.v_row(row).iter().all(sharp)
    }
}

/// Samples by the form that suits them.
#[derive(Default)]
struct Split {
    by_features: Vec<usize>,
    by_used_atoms: Vec<usize>,
    by_atoms: Vec<usize>,
}

/// D^T D, filled up by columns of noughts for whole registers.
fn padded_gram(d: ArrayView2<f64>) -> Array2<f64> {
    let m = d.ncols();
    let mut gram = Array2::zeros((m, m.next_multiple_of(slopes::PAD)));
    gram.slice_mut(s![.., ..m]).assign(&linalg::gram(d));
    gram
}

/// A row of a matrix that the gate of `e_step` keeps in standard layout.
fn contiguous<'a>(matrix: &'a ArrayView2<f64>, row: usize) -> &'a [f64] {
    let width = matrix.ncols();
    matrix.as_slice().map_or(&[], |all| &all[row * width..(row + 1) * width])
}
