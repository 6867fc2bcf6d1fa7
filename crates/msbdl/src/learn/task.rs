//! Lets labels take part in learning: h | x_j ~ N(W_j x_j, beta_j^2 I).
//!
//! This is the E-step on a stacked observation: under D_j stand the rows (sigma/beta) W_j, under
//! y_j the values (sigma/beta) h, and all of them have the noise sigma_j^2. Samples without a
//! label are coded with D_j alone.

use std::f64::consts::TAU;

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis, s};

use super::e_step::{Answer, Posterior, Prepared, Want, e_step};
use super::em::Em;
use super::stats::Stats;
use crate::input::labels::Labels;
use crate::input::task::{NU, TaskPlan};
use crate::support::buffer::Buffer;
use crate::support::error::{Error, Result};
use crate::support::linalg;

/// Labels and what is learnt of them.
pub(crate) struct Task {
    /// L x C, less the mean of the labels that are shown: codes have no mean either.
    pub h: Array2<f64>,
    /// Whether learning sees a sample's label.
    pub shown: Vec<bool>,
    /// W_j, C x M_j.
    pub w: Vec<Array2<f64>>,
    /// beta_j^2
    pub beta2: Vec<f64>,
    pub nu: f64,
    /// Whether codes are made with labels at present.
    pub takes_part: bool,
}

impl Task {
    /// W = 0, so that the first codes are those without labels.
    pub fn new(labels: &Labels, plan: &TaskPlan, n_atoms: &[usize]) -> Self {
        let mean = labels.shares(&plan.shown);
        let h = labels.h() - &mean;
        let mut shown = vec![false; labels.n_samples()];
        plan.shown.iter().for_each(|&i| shown[i] = true);
        let energy: f64 = plan.shown.iter().map(|&i| h.row(i).dot(&h.row(i))).sum();
        let energy = energy / (plan.shown.len() * h.ncols()) as f64;
        Task {
            w: n_atoms.iter().map(|&m| Array2::zeros((h.ncols(), m))).collect(),
            beta2: plan.beta2.iter().map(|given| given.unwrap_or(energy)).collect(),
            nu: plan.nu.unwrap_or(NU * plan.shown.len() as f64),
            takes_part: true,
            h,
            shown,
        }
    }

    /// The dictionaries as they stand, with W under them.
    pub fn stacked(&self, em: &Em, posterior: Posterior) -> Labelled<'_> {
        let all = em.d.iter().zip(&em.s).zip(&em.offset).zip(self.w.iter().zip(&self.beta2));
        let prepared = all.map(|(((d, &s), offset), (w, beta2))| {
            let (n, c) = (d.nrows(), w.nrows());
            let mut stack = Array2::zeros((n + c, d.ncols()));
            stack.slice_mut(s![..n, ..]).assign(d);
            stack.slice_mut(s![n.., ..]).assign(&(w * (s / beta2).sqrt()));
            let mut zeros = Array1::zeros(n + c);
            zeros.slice_mut(s![..n]).assign(offset);
            Prepared::new(stack.view(), s, posterior).with_offset(&zeros)
        });
        Labelled { task: self, stacked: prepared.collect() }
    }

    /// Standard deviations of the labels.
    pub fn beta(&self) -> Vec<f64> {
        self.beta2.iter().map(|beta2| beta2.sqrt()).collect()
    }

    /// W = (sum h mu^T)(C + nu I)^-1 over the labelled samples.
    pub fn update(&mut self, stats: &Stats) -> Result<()> {
        for (w, stats) in self.w.iter_mut().zip(&stats.modalities) {
            let Some(LabelSums { c, hmu, .. }) = &stats.labels else { continue };
            let mut c = c.clone();
            c.diag_mut().mapv_inplace(|x| x + self.nu);
            *w = linalg::right_divide(hmu.clone(), c.view())
                .filter(|w| w.iter().all(|x| x.is_finite()))
                .ok_or_else(|| Error::Numerical("the update of W is singular".into()))?;
        }
        Ok(())
    }
}

/// A task, ready for an E-step.
pub(crate) struct Labelled<'a> {
    task: &'a Task,
    stacked: Vec<Prepared>,
}

impl Labelled<'_> {
    /// The E-step of modality `j` on `samples`, those with a label on the stacked observation.
    pub fn e_step(
        &self,
        j: usize,
        plain: &Prepared,
        samples: &[usize],
        y: ArrayView2<f64>,
        v: ArrayView2<f64>,
        want: Want,
    ) -> (Answer, Option<Told<'_>>) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (place, &sample) in samples.iter().enumerate() {
            if self.task.shown[sample] { &mut with } else { &mut without }.push(place);
        }
        if with.is_empty() {
            return (e_step(plain, y, v, want), None);
        }
        let (n, m, c) = (y.ncols(), v.ncols(), self.task.h.ncols());
        let beta2 = self.task.beta2[j];
        let scale = (plain.s() / beta2).sqrt();
        let mut stacked = Buffer::stale(with.len() * (n + c));
        for (to, &place) in stacked.chunks_exact_mut(n + c).zip(&with) {
            ArrayViewMut1::from(&mut to[..n]).assign(&y.row(place));
            let h = self.task.h.row(samples[place]);
            to[n..].iter_mut().zip(h).for_each(|(to, h)| *to = h * scale);
        }
        let dictionary = &self.stacked[j];
        let told = |places, stacked, cov| Told { places, stacked, dictionary, beta2, c, cov };
        if without.is_empty() {
            let seen = e_step(dictionary, stacked.rows(n + c), v, want);
            return (seen, Some(told(with, stacked, None)));
        }
        let v_with = rows_of(v, &with);
        let seen = e_step(dictionary, stacked.rows(n + c), v_with.rows(m), want);
        let (y, v) = (rows_of(y, &without), rows_of(v, &without));
        let rest = e_step(plain, y.rows(n), v.rows(m), want);
        let all = joined([(&seen, &with), (&rest, &without)], samples.len());
        (all, Some(told(with, stacked, Some(seen.cov))))
    }
}

/// Some rows of a matrix.
fn rows_of(matrix: ArrayView2<f64>, rows: &[usize]) -> Buffer {
    let mut out = Buffer::stale(rows.len() * matrix.ncols());
    for (mut to, &row) in out.rows_mut(matrix.ncols()).rows_mut().into_iter().zip(rows) {
        to.assign(&matrix.row(row));
    }
    out
}

/// Brings the answers of parts back into one order.
fn joined(parts: [(&Answer, &[usize]); 2], rows: usize) -> Answer {
    let m = parts.iter().map(|(part, places)| part.t.len() / places.len()).max().unwrap_or(0);
    let mut all = Answer {
        t: Buffer::stale(rows * m),
        b: Buffer::stale(rows * m),
        quad: Buffer::stale(rows),
        log_det: Buffer::stale(rows),
        cov: Buffer::zeros(parts[0].0.cov.len()),
    };
    for (part, places) in parts {
        for (from, &to) in places.iter().enumerate() {
            let (here, there) = (from * m..(from + 1) * m, to * m..(to + 1) * m);
            all.t[there.clone()].copy_from_slice(&part.t[here.clone()]);
            all.b[there].copy_from_slice(&part.b[here]);
            all.quad[to] = part.quad[from];
            all.log_det[to] = part.log_det[from];
        }
        all.cov.iter_mut().zip(&*part.cov).for_each(|(sum, cov)| *sum += cov);
    }
    all
}

/// The labelled samples of a chunk, and what they were coded with.
pub(crate) struct Told<'a> {
    /// Where they stand in the chunk.
    places: Vec<usize>,
    /// y and (sigma/beta) h, a row a sample.
    stacked: Buffer,
    dictionary: &'a Prepared,
    beta2: f64,
    /// Number of labels.
    c: usize,
    /// The sum of their Sigma, where the chunk has other samples too.
    cov: Option<Buffer>,
}

impl Told<'_> {
    /// What labels added to the posteriors of a chunk: `mu` and `used`, its sums of v b, are of all
    /// its samples, as is `cov`, their sum of Sigma, if that is known.
    pub fn accounts(&self, mu: ArrayView2<f64>, used: &[f64], cov: &Buffer) -> Accounts {
        let (rows, m) = mu.dim();
        let (width, s) = (self.dictionary.d().nrows(), self.dictionary.s());
        let n = width - self.c;
        let some;
        let mu = if self.places.len() == rows {
            mu
        } else {
            some = rows_of(mu, &self.places);
            some.rows(m)
        };
        let (stacked, dictionary) = (self.stacked.rows(width), self.dictionary.d());
        let (h, w) = (stacked.slice(s![.., n..]), dictionary.slice(s![n.., ..]));
        let mut fitted = Buffer::stale(h.len());
        linalg::set_product(fitted.rows_mut(self.c), mu, w.t());
        let mut misfit = vec![None; rows];
        for ((fitted, h), &place) in fitted.chunks_exact(self.c).zip(h.rows()).zip(&self.places) {
            let square: f64 = fitted.iter().zip(h).map(|(fitted, h)| (h - fitted).powi(2)).sum();
            misfit[place] = Some(square / s);
        }
        let c = linalg::gram(mu);
        let mut hmu = linalg::product(h.t(), mu);
        hmu *= (self.beta2 / s).sqrt();
        let energy = c.diag().to_owned();
        let mut sums = LabelSums { count: self.places.len(), c, hmu };
        let mut share = 0.0;
        if let Ok(cov) = ArrayView2::from_shape((m, m), self.cov.as_ref().unwrap_or(cov)) {
            // tr(W Sigma W^T) / beta^2 of tr(W Sigma W^T) / beta^2 + tr(D Sigma D^T) / s = sum v b
            let by_labels = (&linalg::product(w, cov) * &w).sum() / s;
            let used: f64 = self.places.iter().map(|&place| used[place]).sum();
            share = if used > 0.0 { (by_labels / used).clamp(0.0, 1.0) } else { 0.0 };
            sums.c += &cov;
        }
        // The stacked values are labels times sigma / beta.
        let each = -0.5 * self.c as f64 * (TAU.ln() - (s / self.beta2).ln());
        Accounts { misfit, share, constants: each * sums.count as f64, energy, sums }
    }
}

/// What labels added to the posteriors of a chunk.
pub(crate) struct Accounts {
    /// |h - W mu|^2 / beta^2 by place; none where there is no label.
    misfit: Vec<Option<f64>>,
    /// The part of the degrees of freedom in use that the labels account for.
    share: f64,
    /// What log p(y, h) has beside the stacked observation's log|S| and quadratic form.
    pub constants: f64,
    /// Sum of mu^2 over the labelled samples.
    pub energy: Array1<f64>,
    pub sums: LabelSums,
}

impl Accounts {
    /// Takes the labels' share off the sums of v b, and adds their misfit to those of v t^2, so that
    /// y^T S^-1 y less the latter is the residual of y alone.
    pub fn take_off(&self, vb: &mut [f64], vtt: &mut [f64]) {
        for ((vb, vtt), misfit) in vb.iter_mut().zip(vtt).zip(&self.misfit) {
            if let Some(misfit) = misfit {
                *vb *= 1.0 - self.share;
                *vtt += misfit;
            }
        }
    }
}

/// What labelled samples say of W.
#[derive(Clone, Debug)]
pub(crate) struct LabelSums {
    /// Samples.
    pub count: usize,
    /// Sum of mu mu^T + Sigma.
    pub c: Array2<f64>,
    /// Sum of h mu^T, C x M.
    pub hmu: Array2<f64>,
}

impl LabelSums {
    pub fn merge(mine: &mut Option<Self>, theirs: &Option<Self>) {
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => {
                mine.count += theirs.count;
                mine.c += &theirs.c;
                mine.hmu += &theirs.hmu;
            }
            (mine @ None, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    pub fn permute(&mut self, from: &[usize]) {
        self.c = self.c.select(Axis(0), from).select(Axis(1), from);
        self.hmu = self.hmu.select(Axis(1), from);
    }

    pub fn transform(&mut self, inverse: &Array2<f64>) {
        let half = linalg::product(inverse.view(), self.c.view());
        self.c = linalg::product(half.view(), inverse.t());
        self.hmu = linalg::product(self.hmu.view(), inverse.t());
    }

    pub fn forget(&mut self, atom: usize) {
        self.c.row_mut(atom).fill(0.0);
        self.c.column_mut(atom).fill(0.0);
        self.hmu.column_mut(atom).fill(0.0);
    }
}
