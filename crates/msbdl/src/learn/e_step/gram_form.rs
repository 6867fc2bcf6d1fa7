//! Computes posteriors through K = I + V_A^1/2 G_AA V_A^1/2 / s on the atoms in use:
//! right when few variances are alive or when there are fewer atoms than features.

use super::lanes::Lanes;
use super::panel::{Begin, Shape, eliminate, tile};
use super::slopes::{Near, Slopes};
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
    let mut work = Work {
        active: vec![Vec::new(); V::W],
        cov: Buffer::zeros(out.cov.len()),
        ..Work::default()
    };
    for group in rows.chunks(V::W) {
        for (lane, active) in work.active.iter_mut().enumerate() {
            match group.get(lane) {
                Some(&row) => task.active_into(row, active),
                None => active.clear(),
            }
        }
        let k = work.active.iter().map(Vec::len).max().unwrap_or(0);
        if k == 0 {
            for &row in group {
                out.quad[row] = task.yy(row) / task.s;
                out.log_det[row] = task.n() as f64 * task.s.ln();
                if task.want.slopes {
                    work.slopes.near.clear();
                    // SAFETY: the processor has the instruction set, and no atom is near.
                    unsafe { work.slopes.write::<V>(task, row, 0, out) };
                }
            }
            continue;
        }
        let shape = Shape::new::<T>(k, k.next_multiple_of(T) + 1);
        work.load::<V, T>(task, group, shape);
        // SAFETY: `load` sizes the buffers for this shape.
        unsafe {
            let gram = task.gram.as_ptr();
            let (width, scale) = (task.gram.ncols(), 1.0 / task.s);
            let begin = Gathered { lanes: &work.lanes, gram, width, scale, shape };
            eliminate::<V, T>(&mut work.panel, &begin, shape, true);
            work.posterior::<V, T>(task, shape);
            work.read_out::<V, T>(task, group, out, shape);
        }
    }
    work.hand_over(task.m(), out);
}

#[derive(Default)]
struct Work {
    /// Atoms in use, per lane.
    active: Vec<Vec<usize>>,
    lanes: Loaded,
    panel: Buffer,
    /// mu of the atoms in use: [k][lane].
    mu: Buffer,
    /// Sigma of the atoms in use: [column][row][lane], rows up to the column.
    sigma: Buffer,
    /// Sum of Sigma over the samples, below the diagonal and on it.
    cov: Buffer,
    slopes: Slopes,
}

/// What is known of the atoms in use before the elimination: [k][lane], filled up with atoms of
/// variance nought.
#[derive(Default)]
struct Loaded {
    atom: Vec<usize>,
    /// sqrt(v)
    root: Buffer,
    /// sqrt(v) d^T y
    projected: Buffer,
}

/// [K | V^1/2 | V^1/2 D^T y], made tile by tile where it is needed.
struct Gathered<'a> {
    lanes: &'a Loaded,
    /// G, in standard layout.
    gram: *const f64,
    width: usize,
    /// 1 / s
    scale: f64,
    shape: Shape,
}

impl<V: Lanes, const T: usize> Begin<V, T> for Gathered<'_> {
    #[inline(always)]
    unsafe fn tile(&self, c: usize, r: usize, _: *const f64) -> [[V; T]; T] {
        let square = self.shape.square::<T>();
        let atom = self.lanes.atom.as_ptr();
        // SAFETY: rows and columns are within the shape that the lanes were loaded for, and every
        // atom is a row of the Gram matrix.
        unsafe {
            let root = |p: usize| V::load(self.lanes.root.as_ptr().add(p * V::W));
            let mut tile = [[V::splat(0.0); T]; T];
            if c < square {
                let scale = V::splat(self.scale);
                for k in 0..T {
                    let q = c * T + k;
                    let right = root(q).mul(scale);
                    // Below the diagonal nothing is read.
                    for i in 0..if r == c { k + 1 } else { T } {
                        let p = r * T + i;
                        let product = V::from_lanes(|lane| {
                            let (p, q) = (*atom.add(p * V::W + lane), *atom.add(q * V::W + lane));
                            *self.gram.add(q * self.width + p)
                        });
                        let unit = V::splat(if p == q { 1.0 } else { 0.0 });
                        tile[i][k] = unit.fma(product.mul(root(p)), right);
                    }
                }
            } else if c == square + r {
                for i in 0..T {
                    tile[i][i] = root(r * T + i);
                }
            } else if c == 2 * square {
                for i in 0..T {
                    tile[i][0] = V::load(self.lanes.projected.as_ptr().add((r * T + i) * V::W));
                }
            }
            tile
        }
    }
}

impl Work {
    fn load<V: Lanes, const T: usize>(&mut self, task: &Task, group: &[usize], shape: Shape) {
        let len = shape.rows * V::W;
        self.panel = Buffer::stale(shape.len::<V, T>());
        self.mu = Buffer::stale(len);
        self.sigma = Buffer::stale(shape.rows * len);
        let lanes = &mut self.lanes;
        lanes.atom.clear();
        lanes.atom.resize(len, 0);
        lanes.root = Buffer::zeros(len);
        lanes.projected = Buffer::zeros(len);
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let (v, projection) = (task.v_row(row), task.projection_row(row));
            for (p, &atom) in active.iter().enumerate() {
                let root = v[atom].sqrt();
                lanes.atom[p * V::W + lane] = atom;
                lanes.root[p * V::W + lane] = root;
                lanes.projected[p * V::W + lane] = root * projection[atom];
            }
        }
    }

    /// Sigma_A = F^T F and mu_A = F^T F D_A^T y / s, where F = U^-T V^1/2 is lower triangular and
    /// the last column of the panel is F D_A^T y; without sums, the diagonal blocks of Sigma alone.
    #[inline(always)]
    unsafe fn posterior<V: Lanes, const T: usize>(&mut self, task: &Task, shape: Shape) {
        let (blocks, stride, rows) = (shape.square::<T>(), shape.stride::<V, T>(), shape.rows);
        // SAFETY: the panel has blocks of F behind those of U, and one more with a first column.
        unsafe {
            let f = self.panel.as_ptr().add(blocks * stride);
            let (z, scale) = (f.add(blocks * stride), V::splat(1.0 / task.s));
            for j in 0..blocks {
                let right = f.add(j * stride);
                let mut mu = [V::splat(0.0); T];
                for q in j * T..rows {
                    let z = V::load(z.add(q * T * V::W));
                    for k in 0..T {
                        mu[k] = mu[k].fma(V::load(right.add((q * T + k) * V::W)), z);
                    }
                }
                for k in 0..T {
                    mu[k].mul(scale).store(self.mu.as_mut_ptr().add((j * T + k) * V::W));
                }
                for i in if task.want.cov { 0 } else { j }..=j {
                    let mut acc = [[V::splat(0.0); T]; T];
                    tile::<V, T, false>(&mut acc, f.add(i * stride), right, j * T, rows);
                    for k in 0..T {
                        let column = self.sigma.as_mut_ptr().add((j * T + k) * rows * V::W);
                        for p in 0..T {
                            acc[p][k].store(column.add((i * T + p) * V::W));
                        }
                    }
                }
            }
        }
    }

    /// t, b, y^T S^-1 y, log|S| and the sum of Sigma.
    #[inline(always)]
    unsafe fn read_out<V: Lanes, const T: usize>(
        &mut self,
        task: &Task,
        group: &[usize],
        out: &mut Answer,
        shape: Shape,
    ) {
        let (m, n_s, scale) = (task.m(), task.n() as f64 * task.s.ln(), 1.0 / task.s);
        for (lane, (&row, active)) in group.iter().zip(&self.active).enumerate() {
            let (v, projection) = (task.v_row(row), task.projection_row(row));
            let mu = &self.mu[lane..];
            let fitted =
                active.iter().zip(mu.iter().step_by(V::W)).map(|(&k, mu)| mu * projection[k]);
            out.quad[row] = (task.yy(row) - fitted.sum::<f64>()) * scale;
            let diagonal = (0..active.len()).map(|p| self.panel[shape.at::<V, T>(p, p) + lane]);
            out.log_det[row] = n_s - 2.0 * sum_of_logs(diagonal);
            if task.want.slopes {
                self.slopes.near.clear();
                self.slopes.near.extend(active.iter().enumerate().map(|(p, &atom)| Near {
                    gram: task.gram_row(atom).as_ptr(),
                    mu: mu[p * V::W],
                    column: self.panel[shape.at::<V, T>(0, shape.rows + p) + lane..].as_ptr(),
                }));
                // SAFETY: a block of the panel has k rows or more, T registers apart.
                unsafe { self.slopes.write::<V>(task, row, T * V::W, out) };
            }
            for (q, &atom) in active.iter().enumerate() {
                let column = &self.sigma[q * shape.rows * V::W + lane..];
                let v = v[atom];
                out.t[row * m + atom] = mu[q * V::W] / v;
                out.b[row * m + atom] = (1.0 - column[q * V::W] / v) / v;
                if task.want.cov {
                    let cov = &mut self.cov[atom * m..(atom + 1) * m];
                    for (&other, sigma) in active[..=q].iter().zip(column.iter().step_by(V::W)) {
                        cov[other] += sigma;
                    }
                }
            }
        }
    }

    /// Adds the sum of Sigma to that of other forms.
    fn hand_over(&self, m: usize, out: &mut Answer) {
        if out.cov.is_empty() {
            return;
        }
        for p in 0..m {
            for q in 0..=p {
                let sum = self.cov[p * m + q];
                out.cov[p * m + q] += sum;
                if p != q {
                    out.cov[q * m + p] += sum;
                }
            }
        }
    }
}
