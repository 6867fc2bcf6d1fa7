//! Computes posteriors through K = I + V^1/2 G V^1/2 / s (M x M), all atoms at once: right while
//! most of v is alive and there are more features, or features and labels, than half the atoms.

use ndarray::s;

use super::lanes::Lanes;
use super::panel::{Beside, Shape, eliminate, load_tile, store_tile, tile};
use super::{Answer, Task};
use crate::support::buffer::Buffer;
use crate::support::logs::sum_of_logs;

/// Z of several groups is summed at once, as far as it fits the cache.
const Z_BYTES: usize = 1 << 17;

/// Answers `task` for the samples in `rows`, `V::W` at a time. Where v is nought, so are t and b.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const T: usize>(task: &Task, rows: &[usize], out: &mut Answer) {
    let m = task.m();
    let size = m.next_multiple_of(T);
    let shape = Shape::new::<T>(m, size + 1);
    let learn = !out.cov.is_empty();
    let deep = (Z_BYTES / (8 * size * size * V::W)).clamp(1, 8);
    let blocks = size / T;
    let mut work = Work {
        shape,
        gram: pack::<T>(task),
        root: Buffer::zeros(size * V::W),
        inverse: Buffer::zeros(size * V::W),
        fit: Buffer::zeros(size * V::W),
        panel: Buffer::stale(shape.len::<V, T>()),
        rhs: unit::<V, T>(shape),
        z: Buffer::stale(if learn { deep * size * size * V::W } else { 0 }),
        cov: Buffer::zeros(if learn { blocks * (blocks + 1) / 2 * T * T * V::W } else { 0 }),
    };
    for some in rows.chunks(V::W * deep) {
        for (place, group) in some.chunks(V::W).enumerate() {
            // SAFETY: the buffers were sized for this shape just above.
            unsafe {
                work.load::<V, T>(task, group);
                work.form_k::<V, T>(task.s);
                let begin = Beside { rhs: &work.rhs, shape };
                eliminate::<V, T>(&mut work.panel, &begin, shape, true);
                work.read_out::<V, T>(task, group, place, out);
            }
        }
        if learn {
            // SAFETY: z holds as many groups as there are in `some`.
            unsafe { work.add_cov::<V, T>(some.len().div_ceil(V::W)) };
        }
    }
    if learn {
        work.hand_over_cov::<V, T>(m, out);
    }
}

struct Work {
    shape: Shape,
    /// G by blocks of columns, filled up with noughts: [block][row][T].
    gram: Buffer,
    /// sqrt(v), its inverse, and D^T y or t: [atom][lane].
    root: Buffer,
    inverse: Buffer,
    fit: Buffer,
    panel: Buffer,
    /// [I | V^1/2 D^T y]
    rhs: Buffer,
    /// Z = U^-T V^1/2 of some groups: [group][block of atoms][row][T][lane].
    z: Buffer,
    /// Lane-wise sums of Sigma = Z^T Z, tile by tile of the upper triangle.
    cov: Buffer,
}

fn pack<const T: usize>(task: &Task) -> Buffer {
    let size = task.m().next_multiple_of(T);
    let mut packed = Buffer::zeros(size * size);
    for ((p, q), &x) in task.gram.slice(s![.., ..task.m()]).indexed_iter() {
        packed[(q / T * size + p) * T + q % T] = x;
    }
    packed
}

/// [I | 0] in the layout of the right-hand blocks.
fn unit<V: Lanes, const T: usize>(shape: Shape) -> Buffer {
    let mut rhs = Buffer::zeros(shape.rhs_len::<V, T>());
    for p in 0..shape.rows {
        let here = shape.at::<V, T>(p, p);
        rhs[here..here + V::W].fill(1.0);
    }
    rhs
}

impl Work {
    /// Puts sqrt(v) into `root` and V^1/2 D^T y beside I on the right-hand side.
    #[inline(always)]
    unsafe fn load<V: Lanes, const T: usize>(&mut self, task: &Task, group: &[usize]) {
        let (at, m) = (self.shape, task.m());
        let least = super::ALIVE * task.s;
        if group.len() < V::W {
            self.root.fill(0.0);
            self.fit.fill(0.0);
        }
        for (lane, &row) in group.iter().enumerate() {
            let values = task.v_row(row).iter().zip(task.projection_row(row));
            let to = self.root.chunks_exact_mut(V::W).zip(self.fit.chunks_exact_mut(V::W));
            for ((v, fit), (&alive, &projection)) in to.zip(values) {
                v[lane] = if alive > least { alive } else { 0.0 };
                fit[lane] = projection;
            }
        }
        for k in 0..m {
            // SAFETY: all of them hold a register for every atom.
            unsafe {
                let root = self.root.as_mut_ptr().add(k * V::W);
                let v = V::load(root);
                let (fit, r) = (V::load(self.fit.as_ptr().add(k * V::W)), v.sqrt());
                r.store(root);
                // v^-1/2, and nought where v is.
                r.div(v.fma(V::splat(1.0), V::splat(f64::MIN_POSITIVE)))
                    .store(self.inverse.as_mut_ptr().add(k * V::W));
                fit.mul(r).store(self.rhs.as_mut_ptr().add(at.at::<V, T>(k, at.rows)));
            }
        }
    }

    /// K, upper tiles; atoms that are not in use have a row of the unit matrix.
    #[inline(always)]
    unsafe fn form_k<V: Lanes, const T: usize>(&mut self, s: f64) {
        let (rows, count) = (self.shape.rows, self.shape.rows / T);
        // SAFETY: blocks and rows are bounded by the shape that all buffers were sized for.
        unsafe {
            let root = self.root.as_ptr();
            for qb in 0..count {
                let mut right = [V::splat(0.0); T];
                for k in 0..T {
                    right[k] = V::load(root.add((qb * T + k) * V::W)).mul(V::splat(1.0 / s));
                }
                let gram = self.gram.as_ptr().add(qb * rows * T);
                let panel = self.panel.as_mut_ptr().add(qb * rows * T * V::W);
                for p in 0..(qb + 1) * T {
                    let left = V::load(root.add(p * V::W));
                    for k in 0..T {
                        let unit = V::splat(if p == qb * T + k { 1.0 } else { 0.0 });
                        let g = V::splat(*gram.add(p * T + k));
                        let x = unit.fma(left.mul(g), right[k]);
                        x.store(panel.add((p * T + k) * V::W));
                    }
                }
            }
        }
    }

    /// From W = U^-T and w = U^-T V^1/2 D^T y: diag(K^-1) = diag(W^T W), mu = V^1/2 W^T w / s.
    #[inline(always)]
    unsafe fn read_out<V: Lanes, const T: usize>(
        &mut self,
        task: &Task,
        group: &[usize],
        place: usize,
        out: &mut Answer,
    ) {
        let (m, at) = (task.m(), self.shape);
        let (size, learn) = (at.rows, !self.z.is_empty());
        let mut fitted = [0.0; 16];
        // SAFETY: blocks and rows are below size / T and size, in the panel as in z; `fit`, `root`
        // and `inverse` hold a register for each of `size` atoms, `fitted` the widest one.
        unsafe {
            let w = self.panel.as_ptr().add(at.at::<V, T>(0, 2 * size));
            let mut energy = V::splat(0.0);
            for p in 0..size {
                let w = V::load(w.add(p * T * V::W));
                energy = energy.fma(w, w);
            }
            energy.store(fitted.as_mut_ptr());
            for block in 0..size / T {
                let x = self.panel.as_ptr().add(at.at::<V, T>(0, size + block * T));
                let z = (place * size + block * T) * size * V::W;
                let (mut fit, mut square) = ([V::splat(0.0); T], [V::splat(0.0); T]);
                let mut root = [V::splat(0.0); T];
                for i in 0..T {
                    root[i] = V::load(self.root.as_ptr().add((block * T + i) * V::W));
                }
                for p in block * T..size {
                    let w = V::load(w.add(p * T * V::W));
                    for i in 0..T {
                        let here = (p * T + i) * V::W;
                        let x = V::load(x.add(here));
                        fit[i] = fit[i].fma(x, w);
                        square[i] = square[i].fma(x, x);
                        if learn {
                            x.mul(root[i]).store(self.z.as_mut_ptr().add(z + here));
                        }
                    }
                }
                for i in 0..T {
                    let here = (block * T + i) * V::W;
                    let inverse = V::load(self.inverse.as_ptr().add(here));
                    let t = fit[i].mul(inverse).mul(V::splat(1.0 / task.s));
                    let b = V::splat(1.0).fnma(square[i], V::splat(1.0)).mul(inverse).mul(inverse);
                    t.store(self.fit.as_mut_ptr().add(here));
                    // sqrt(v) is not needed any more.
                    b.store(self.root.as_mut_ptr().add(here));
                }
            }
        }
        for (lane, &row) in group.iter().enumerate() {
            let here = row * m..(row + 1) * m;
            let (t, b) = (self.fit[lane..].iter(), self.root[lane..].iter());
            let (t, b) = (t.step_by(V::W), b.step_by(V::W));
            out.t[here.clone()].iter_mut().zip(t).for_each(|(to, t)| *to = *t);
            out.b[here].iter_mut().zip(b).for_each(|(to, b)| *to = *b);
            out.quad[row] = (task.yy(row) - fitted[lane] / task.s) / task.s;
            let diagonal = (0..m).map(|p| self.panel[at.at::<V, T>(p, p) + lane]);
            out.log_det[row] = task.n() as f64 * task.s.ln() - 2.0 * sum_of_logs(diagonal);
        }
    }

    /// Adds Z^T Z of these groups, lane by lane; Z is lower triangular.
    #[inline(always)]
    unsafe fn add_cov<V: Lanes, const T: usize>(&mut self, groups: usize) {
        let size = self.shape.rows;
        let stride = size * T * V::W;
        // SAFETY: `groups` of z are filled, with size / T blocks of `stride` values each.
        unsafe {
            let mut here = self.cov.as_mut_ptr();
            for i in 0..size / T {
                for j in i..size / T {
                    let mut acc = load_tile::<V, T>(here);
                    for group in 0..groups {
                        let z = self.z.as_ptr().add(group * size * size * V::W);
                        let (left, right) = (z.add(i * stride), z.add(j * stride));
                        tile::<V, T, false>(&mut acc, left, right, j * T, size);
                    }
                    store_tile(&acc, here);
                    here = here.add(T * T * V::W);
                }
            }
        }
    }

    /// Both triangles of the sum of Sigma.
    fn hand_over_cov<V: Lanes, const T: usize>(&self, m: usize, out: &mut Answer) {
        let mut tiles = self.cov.chunks_exact(T * T * V::W);
        for i in 0..m.div_ceil(T) {
            for j in i..m.div_ceil(T) {
                let Some(values) = tiles.next() else { return };
                for (index, lanes) in values.chunks_exact(V::W).enumerate() {
                    let (row, column) = (i * T + index / T, j * T + index % T);
                    if row <= column && column < m {
                        let sum: f64 = lanes.iter().sum();
                        out.cov[row * m + column] += sum;
                        if row != column {
                            out.cov[column * m + row] += sum;
                        }
                    }
                }
            }
        }
    }
}
