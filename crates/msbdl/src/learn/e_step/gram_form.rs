//! Computes posteriors through K = I + V_A^1/2 G_AA V_A^1/2 / s on the atoms in use:
//! right when few variances are alive or when there are fewer atoms than features.

use super::lanes::Lanes;
use super::panel::{Shape, eliminate, store_tile, tile};
use super::{Answer, Task};

/// Answers `task` for the samples in `rows`; those with a similar number of atoms in use
/// should be neighbours, since a group pays for its largest.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const T: usize>(task: &Task, rows: &[usize], out: &mut Answer) {
    let mut work = Work::default();
    for group in rows.chunks(V::W) {
        work.active = group.iter().map(|&row| task.active(row).collect()).collect();
        let k = work.active.iter().map(Vec::len).max().unwrap_or(0);
        if k == 0 {
            for &row in group {
                out.quad[row] = task.yy(row) / task.s;
                out.log_det[row] = task.n() as f64 * task.s.ln();
                if task.want.slopes {
                    slopes_of_the_rest(task, row, &[], &[], &[], out);
                }
            }
            continue;
        }
        // SAFETY: `form_k` sizes the buffers for this shape.
        unsafe {
            let shape = Shape::new::<T>(k, k.next_multiple_of(T) + 1);
            work.form_k::<V, T>(task, group, shape);
            eliminate::<V, T>(&mut work.panel, &work.rhs, shape, true);
            work.invert::<V, T>(shape);
            work.read_out::<V, T>(task, group, out, shape);
        }
    }
}

#[derive(Default)]
struct Work {
    active: Vec<Vec<usize>>,
    /// sqrt(v) of the active atoms: [k][lane].
    root: Vec<f64>,
    panel: Vec<f64>,
    /// [I | V^1/2 D^T y]
    rhs: Vec<f64>,
    /// K^-1, upper tiles: [tile row][tile column][T][T][lane].
    inverse: Vec<f64>,
}

impl Work {
    /// [K | I | V^1/2 D^T y], padded by the unit matrix.
    #[inline(always)]
    unsafe fn form_k<V: Lanes, const T: usize>(
        &mut self,
        task: &Task,
        group: &[usize],
        shape: Shape,
    ) {
        self.panel.clear();
        self.panel.resize(shape.len::<V, T>(), 0.0);
        self.rhs.clear();
        self.rhs.resize(shape.rhs_len::<V, T>(), 0.0);
        self.root.clear();
        self.root.resize(shape.rows * V::W, 0.0);
        for p in 0..shape.rows {
            let here = shape.at::<V, T>(p, p);
            self.panel[here..here + V::W].fill(1.0);
            self.rhs[here..here + V::W].fill(1.0);
        }
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let v = task.v_row(row);
            for (p, &atom) in active.iter().enumerate() {
                self.root[p * V::W + lane] = v[atom].sqrt();
            }
            for (q, &atom) in active.iter().enumerate() {
                let gram = task.gram_row(atom);
                let scale = self.root[q * V::W + lane] / task.s;
                for (p, &other) in active[..=q].iter().enumerate() {
                    self.panel[shape.at::<V, T>(p, q) + lane] +=
                        self.root[p * V::W + lane] * scale * gram[other];
                }
                self.rhs[shape.at::<V, T>(q, shape.rows) + lane] =
                    self.root[q * V::W + lane] * task.projection_row(row)[atom];
            }
        }
    }

    /// K^-1 = W^T W with W = U^-T, which is lower triangular.
    #[inline(always)]
    unsafe fn invert<V: Lanes, const T: usize>(&mut self, shape: Shape) {
        let blocks = shape.rows / T;
        self.inverse.clear();
        self.inverse.resize(blocks * blocks * T * T * V::W, 0.0);
        let stride = shape.rows * T * V::W;
        // SAFETY: the right-hand side has the unit matrix's `blocks` blocks of `rows` rows.
        unsafe {
            let w = self.panel.as_ptr().add(blocks * stride);
            for i in 0..blocks {
                for j in i..blocks {
                    let mut acc = [[V::splat(0.0); T]; T];
                    let (left, right) = (w.add(i * stride), w.add(j * stride));
                    tile::<V, T, false>(&mut acc, left, right, j * T, shape.rows);
                    let here = self.inverse.as_mut_ptr().add((i * blocks + j) * T * T * V::W);
                    store_tile(&acc, here);
                }
            }
        }
    }

    /// Sigma_A = V^1/2 K^-1 V^1/2 and mu_A = Sigma_A D_A^T y / s, as t, b and the sum of Sigma.
    #[inline(always)]
    unsafe fn read_out<V: Lanes, const T: usize>(
        &self,
        task: &Task,
        group: &[usize],
        out: &mut Answer,
        shape: Shape,
    ) {
        let (m, blocks) = (task.m(), shape.rows / T);
        let inverse = |p: usize, q: usize, lane: usize| {
            let index = (p / T * blocks + q / T) * T * T + p % T * T + q % T;
            self.inverse[index * V::W + lane]
        };
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let projection = task.projection_row(row);
            let v = task.v_row(row);
            let mut fitted = 0.0;
            let mut means = Vec::with_capacity(active.len());
            for (p, &atom) in active.iter().enumerate() {
                // mu = V^1/2 W^T (W V^1/2 D^T y) / s: the last column holds the bracket.
                let mut mu = 0.0;
                for q in p..active.len() {
                    mu += self.panel[shape.at::<V, T>(q, shape.rows + p) + lane]
                        * self.panel[shape.at::<V, T>(q, 2 * shape.rows) + lane];
                }
                let root = self.root[p * V::W + lane];
                mu *= root / task.s;
                means.push(mu);
                fitted += mu * projection[atom];
                out.t[row * m + atom] = mu / v[atom];
                out.b[row * m + atom] = (1.0 - inverse(p, p, lane)) / v[atom];
            }
            out.quad[row] = (task.yy(row) - fitted) / task.s;
            out.log_det[row] = task.n() as f64 * task.s.ln()
                - 2.0
                    * super::sum_of_logs(
                        (0..active.len()).map(|p| self.panel[shape.at::<V, T>(p, p) + lane]),
                    );
            if !(task.want.cov || task.want.slopes) {
                continue;
            }
            let k = active.len();
            let mut sigma = vec![0.0; k * k];
            for q in 0..k {
                for p in 0..=q {
                    let roots = self.root[p * V::W + lane] * self.root[q * V::W + lane];
                    let x = inverse(p, q, lane) * roots;
                    (sigma[p * k + q], sigma[q * k + p]) = (x, x);
                }
            }
            if task.want.cov {
                for (&atom, sigma) in active.iter().zip(sigma.chunks_exact(k.max(1))) {
                    for (&other, x) in active.iter().zip(sigma) {
                        out.cov[atom * m + other] += x;
                    }
                }
            }
            if task.want.slopes {
                slopes_of_the_rest(task, row, active, &means, &sigma, out);
            }
        }
    }
}

/// t and b of atoms that are switched off: t = d^T (y - D mu)/s, b = d^T (d - D Sigma D^T d/s)/s.
fn slopes_of_the_rest(
    task: &Task,
    row: usize,
    active: &[usize],
    mu: &[f64],
    sigma: &[f64],
    out: &mut Answer,
) {
    let (m, k) = (task.m(), active.len());
    let projection = task.projection_row(row);
    let mut used = active.iter().copied().peekable();
    let mut near = vec![0.0; k];
    for atom in 0..m {
        if used.next_if_eq(&atom).is_some() {
            continue;
        }
        let gram = task.gram_row(atom);
        let mut t = projection[atom];
        for ((near, &other), mu) in near.iter_mut().zip(active).zip(mu) {
            *near = gram[other];
            t -= *near * mu;
        }
        let mut explained = 0.0;
        for (left, sigma) in near.iter().zip(sigma.chunks_exact(k.max(1))) {
            explained += left * sigma.iter().zip(&near).map(|(s, right)| s * right).sum::<f64>();
        }
        out.t[row * m + atom] = t / task.s;
        out.b[row * m + atom] = (gram[atom] - explained / task.s) / task.s;
    }
}
