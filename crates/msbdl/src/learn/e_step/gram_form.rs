//! Computes posteriors through K = I + V_A^1/2 G_AA V_A^1/2 / s on the atoms in use:
//! right when few variances are alive or when there are fewer atoms than features.

use super::lanes::Lanes;
use super::panel::{Beside, Shape, eliminate, store_tile, tile};
use super::slopes::Slopes;
use super::{Answer, Task};
use crate::support::buffer::Buffer;
use crate::support::logs::sum_of_logs;

/// Answers `task` for the samples in `rows`; those with a similar number of atoms in use
/// should be neighbours, since a group pays for its largest.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const T: usize>(task: &Task, rows: &[usize], out: &mut Answer) {
    let mut work = Work { active: vec![Vec::new(); V::W], ..Work::default() };
    for group in rows.chunks(V::W) {
        for (active, &row) in work.active.iter_mut().zip(group) {
            task.active_into(row, active);
        }
        let k = work.active[..group.len()].iter().map(Vec::len).max().unwrap_or(0);
        if k == 0 {
            for &row in group {
                out.quad[row] = task.yy(row) / task.s;
                out.log_det[row] = task.n() as f64 * task.s.ln();
                if task.want.slopes {
                    work.slopes.clear(0);
                    // SAFETY: the processor has the instruction set.
                    unsafe { work.slopes.write::<V>(task, row, &[], out) };
                }
            }
            continue;
        }
        // SAFETY: `form_k` sizes the buffers for this shape.
        unsafe {
            let shape = Shape::new::<T>(k, k.next_multiple_of(T) + 1);
            work.form_k::<V, T>(task, group, shape);
            let begin = Beside { rhs: &work.rhs, shape };
            eliminate::<V, T>(&mut work.panel, &begin, shape, true);
            work.invert::<V, T>(shape, task.want.cov);
            work.read_out::<V, T>(task, group, out, shape);
        }
    }
}

#[derive(Default)]
struct Work {
    /// Atoms in use, per lane.
    active: Vec<Vec<usize>>,
    /// sqrt(v) of the active atoms: [lane][k].
    root: Vec<f64>,
    panel: Buffer,
    /// [I | V^1/2 D^T y]
    rhs: Buffer,
    /// K^-1, upper tiles: [tile row][tile column][T][T][lane].
    inverse: Buffer,
    slopes: Slopes,
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
        self.panel = Buffer::zeros(shape.len::<V, T>());
        self.rhs = Buffer::zeros(shape.rhs_len::<V, T>());
        self.root.resize(shape.rows * V::W, 0.0);
        for p in 0..shape.rows {
            let here = shape.at::<V, T>(p, p);
            self.panel[here..here + V::W].fill(1.0);
            self.rhs[here..here + V::W].fill(1.0);
        }
        let last = shape.at::<V, T>(0, shape.rows);
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let (v, projection) = (task.v_row(row), task.projection_row(row));
            let root = &mut self.root[lane * shape.rows..(lane + 1) * shape.rows];
            root.iter_mut().zip(active).for_each(|(root, &atom)| *root = v[atom].sqrt());
            for (p, &atom) in active.iter().enumerate() {
                self.rhs[last + p * T * V::W + lane] = root[p] * projection[atom];
            }
            for (q, &atom) in active.iter().enumerate() {
                let (gram, scale) = (task.gram_row(atom), root[q] / task.s);
                let column = &mut self.panel[shape.at::<V, T>(0, q) + lane..];
                for (p, &other) in active[..=q].iter().enumerate() {
                    column[p * T * V::W] += root[p] * scale * gram[other];
                }
            }
        }
    }

    /// K^-1 = W^T W with W = U^-T, which is lower triangular; if not `whole`, the tiles of its
    /// diagonal alone.
    #[inline(always)]
    unsafe fn invert<V: Lanes, const T: usize>(&mut self, shape: Shape, whole: bool) {
        let blocks = shape.rows / T;
        // Only tiles that were written are read.
        self.inverse = Buffer::stale(blocks * blocks * T * T * V::W);
        let stride = shape.rows * T * V::W;
        // SAFETY: the right-hand side has the unit matrix's `blocks` blocks of `rows` rows.
        unsafe {
            let w = self.panel.as_ptr().add(blocks * stride);
            for i in 0..blocks {
                for j in i..if whole { blocks } else { i + 1 } {
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
        &mut self,
        task: &Task,
        group: &[usize],
        out: &mut Answer,
        shape: Shape,
    ) {
        let (m, n_s) = (task.m(), task.n() as f64 * task.s.ln());
        let (panel, slopes) = (&self.panel, &mut self.slopes);
        let scale = 1.0 / task.s;
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let k = active.len();
            let root = &self.root[lane * shape.rows..];
            let (v, projection) = (task.v_row(row), task.projection_row(row));
            slopes.clear(k);
            // F = W V^1/2; the last column of the panel holds F D^T y.
            let column = |c: usize| &panel[shape.at::<V, T>(0, c) + lane..];
            let z = column(2 * shape.rows);
            let mut fitted = 0.0;
            for (p, &atom) in active.iter().enumerate() {
                let w = column(shape.rows + p);
                let mut mu = 0.0;
                for q in p..k {
                    let f = w[q * T * V::W] * root[p];
                    slopes.f[q * k + p] = f;
                    mu += f * z[q * T * V::W];
                }
                mu *= scale;
                slopes.mu.push(mu);
                fitted += mu * projection[atom];
            }
            out.quad[row] = (task.yy(row) - fitted) * scale;
            let diagonal = (0..k).map(|p| panel[shape.at::<V, T>(p, p) + lane]);
            out.log_det[row] = n_s - 2.0 * sum_of_logs(diagonal);
            if task.want.slopes {
                // SAFETY: the processor has the instruction set.
                unsafe { slopes.write::<V>(task, row, active, out) };
            }
            let blocks = shape.rows / T;
            for (q, &atom) in active.iter().enumerate() {
                let tiles = &self.inverse[(q / T * T * T + q % T) * V::W + lane..];
                let inverse = |p: usize| tiles[(p / T * blocks * T + p % T) * T * V::W];
                out.t[row * m + atom] = slopes.mu[q] / v[atom];
                out.b[row * m + atom] = (1.0 - inverse(q)) / v[atom];
                if task.want.cov {
                    out.cov[atom * m + atom] += inverse(q) * v[atom];
                    for (p, &other) in active[..q].iter().enumerate() {
                        let sigma = inverse(p) * root[p] * root[q];
                        out.cov[atom * m + other] += sigma;
                        out.cov[other * m + atom] += sigma;
                    }
                }
            }
        }
    }
}
