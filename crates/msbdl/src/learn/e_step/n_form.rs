//! Computes posteriors through S = s I + D V D^T (N x N): right while most of v is alive.

use super::lanes::Lanes;
use super::panel::{Shape, eliminate, load_tile, store_tile, tile};
use super::{Answer, Task};
use crate::support::buffer::Buffer;
use crate::support::logs::sum_of_logs;

/// Z of several groups is summed at once, as far as it fits the cache.
const Z_BYTES: usize = 1 << 17;
/// Blocks of Z that meet all others at once.
const LEFT: usize = 2;
/// Atoms whose scaled copies stay in the first-level cache while S is formed.
const AT_ONCE: usize = 256;

/// Answers `task` for the samples in `rows`, `V::W` at a time.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const T: usize>(task: &Task, rows: &[usize], out: &mut Answer) {
    let (n, m) = (task.n(), task.m());
    let shape = Shape::new::<T>(n, m + 1);
    let deep = (Z_BYTES / (8 * n * m * V::W)).clamp(1, 8);
    let learn = !out.cov.is_empty();
    let mut work = Work {
        shape,
        panel: Buffer::zeros(shape.len::<V, T>()),
        rhs: spread::<V, T>(task, shape),
        v: Buffer::zeros(m * V::W),
        scaled: Buffer::zeros(AT_ONCE.min(m) * T * V::W),
        packed: pack::<T>(task),
        deep,
        z: Buffer::zeros(if learn { m.next_multiple_of(T) * n * deep * V::W } else { 0 }),
        cov: Buffer::zeros(if learn { cov_len::<V, T>(m) } else { 0 }),
    };
    for some in rows.chunks(V::W * work.deep) {
        if some.len() < V::W * work.deep {
            work.z.fill(0.0);
        }
        for (place, group) in some.chunks(V::W).enumerate() {
            // SAFETY: the buffers were sized for this shape just above.
            unsafe {
                work.load::<V, T>(task, group);
                work.form_s::<V, T>(task);
                eliminate::<V, T>(&mut work.panel, &work.rhs, shape, false);
                work.read_out::<V, T>(task, group, place, out);
            }
        }
        if learn {
            // SAFETY: z has deep * n rows in every block.
            unsafe { work.add_cov::<V, T>(n, m) };
        }
    }
    if learn {
        work.hand_over_cov::<V, T>(task, rows, out);
    }
}

struct Work {
    shape: Shape,
    panel: Buffer,
    /// [D | y], D the same in all lanes.
    rhs: Buffer,
    v: Buffer,
    /// v[m] d[p][m] for one block of rows p and some atoms m.
    scaled: Buffer,
    /// D by blocks of rows, filled up with noughts: [block][m][T].
    packed: Buffer,
    /// Groups that `z` holds.
    deep: usize,
    /// Z = U^-T D V of some groups: [block of atoms][group][row][T][lane].
    z: Buffer,
    /// Lane-wise sums of Z^T Z, tile by tile of the upper triangle.
    cov: Buffer,
}

fn pack<const T: usize>(task: &Task) -> Buffer {
    let mut packed = Buffer::zeros(task.n().next_multiple_of(T) * task.m());
    for ((p, k), &x) in task.d.indexed_iter() {
        packed[(p / T * task.m() + k) * T + p % T] = x;
    }
    packed
}

/// [D | 0] in the layout of the right-hand blocks.
fn spread<V: Lanes, const T: usize>(task: &Task, shape: Shape) -> Buffer {
    let mut rhs = Buffer::zeros(shape.rhs_len::<V, T>());
    for ((p, k), &x) in task.d.indexed_iter() {
        let here = shape.at::<V, T>(p, k);
        rhs[here..here + V::W].fill(x);
    }
    rhs
}

fn cov_len<V: Lanes, const T: usize>(m: usize) -> usize {
    let blocks = m.div_ceil(T);
    blocks * (blocks + 1) / 2 * T * T * V::W
}

impl Work {
    /// Puts the variances into `v` and y beside D on the right-hand side.
    #[inline(always)]
    fn load<V: Lanes, const T: usize>(&mut self, task: &Task, group: &[usize]) {
        let (n, m) = (task.n(), task.m());
        if group.len() < V::W {
            self.v.fill(0.0);
            for p in 0..n {
                let here = self.shape.at::<V, T>(p, m);
                self.rhs[here..here + V::W].fill(0.0);
            }
        }
        for (lane, &row) in group.iter().enumerate() {
            for (v, &x) in self.v.chunks_exact_mut(V::W).zip(task.v_row(row)) {
                v[lane] = x;
            }
            for (p, &x) in task.y_row(row).iter().enumerate() {
                self.rhs[self.shape.at::<V, T>(p, m) + lane] = x;
            }
        }
    }

    /// S[p][q] = s delta + sum_m v[m] d[p][m] d[q][m], upper tiles.
    #[inline(always)]
    unsafe fn form_s<V: Lanes, const T: usize>(&mut self, task: &Task) {
        let (m, count) = (task.m(), self.shape.rows / T);
        let stride = self.shape.rows * T * V::W;
        for pb in 0..count {
            for from in (0..m).step_by(AT_ONCE) {
                let some = AT_ONCE.min(m - from);
                // SAFETY: offsets stay below the buffers' lengths (m, rows and T bound them).
                unsafe {
                    let d = |block: usize| self.packed.as_ptr().add((block * m + from) * T);
                    let scaled = self.scaled.as_mut_ptr();
                    for k in 0..some {
                        let v = V::load(self.v.as_ptr().add((from + k) * V::W));
                        for i in 0..T {
                            let d = V::splat(*d(pb).add(k * T + i));
                            v.mul(d).store(scaled.add((k * T + i) * V::W));
                        }
                    }
                    for qb in pb..count {
                        let here = self.panel.as_mut_ptr().add(qb * stride + pb * T * T * V::W);
                        let mut acc = [[V::splat(0.0); T]; T];
                        if from > 0 {
                            acc = load_tile(here);
                        } else if pb == qb {
                            (0..T).for_each(|i| acc[i][i] = V::splat(task.s));
                        }
                        shared_tile(&mut acc, scaled, d(qb), some);
                        store_tile(&acc, here);
                    }
                }
            }
        }
    }

    /// t = D^T S^-1 y, b = diag(D^T S^-1 D), y^T S^-1 y, log|S|; keeps Z = U^-T D V if it is to
    /// be summed.
    #[inline(always)]
    unsafe fn read_out<V: Lanes, const T: usize>(
        &mut self,
        task: &Task,
        group: &[usize],
        place: usize,
        out: &mut Answer,
    ) {
        let (n, m, at) = (task.n(), task.m(), self.shape);
        let w = at.at::<V, T>(0, at.rows + m);
        let keep = !self.z.is_empty();
        for block in 0..m.div_ceil(T) {
            let (mut t, mut b) = ([[0.0; 16]; T], [[0.0; 16]; T]);
            // SAFETY: this block of the right-hand side and column m have `rows` rows; z has
            // n rows for every group and as many blocks.
            unsafe {
                let x = self.panel.as_ptr().add(at.at::<V, T>(0, at.rows + block * T));
                let w = self.panel.as_ptr().add(w);
                let here = if keep { (block * self.deep + place) * n * T * V::W } else { 0 };
                let z = self.z.as_mut_ptr().add(here);
                let (mut sum_t, mut sum_b) = ([V::splat(0.0); T], [V::splat(0.0); T]);
                let mut v = [V::splat(0.0); T];
                for i in 0..T.min(m - block * T) {
                    v[i] = V::load(self.v.as_ptr().add((block * T + i) * V::W));
                }
                for p in 0..n {
                    let w = V::load(w.add(p * T * V::W));
                    for i in 0..T {
                        let here = (p * T + i) * V::W;
                        let x = V::load(x.add(here));
                        sum_t[i] = sum_t[i].fma(x, w);
                        sum_b[i] = sum_b[i].fma(x, x);
                        if keep {
                            x.mul(v[i]).store(z.add(here));
                        }
                    }
                }
                for i in 0..T {
                    sum_t[i].store(t[i].as_mut_ptr());
                    sum_b[i].store(b[i].as_mut_ptr());
                }
            }
            for (lane, &row) in group.iter().enumerate() {
                let here = row * m + block * T..row * m + m.min((block + 1) * T);
                let to = out.t[here.clone()].iter_mut().zip(&mut out.b[here]);
                for (i, (to_t, to_b)) in to.enumerate() {
                    (*to_t, *to_b) = (t[i][lane], b[i][lane]);
                }
            }
        }
        for (lane, &row) in group.iter().enumerate() {
            out.quad[row] = (0..n).map(|p| self.panel[w + p * T * V::W + lane].powi(2)).sum();
            out.log_det[row] =
                -2.0 * sum_of_logs((0..n).map(|p| self.panel[at.at::<V, T>(p, p) + lane]));
        }
    }

    /// Adds Z^T Z of these groups, lane by lane.
    #[inline(always)]
    unsafe fn add_cov<V: Lanes, const T: usize>(&mut self, n: usize, m: usize) {
        let (blocks, rows) = (m.div_ceil(T), n * self.deep);
        let stride = rows * T * V::W;
        // SAFETY: blocks of z have `rows` rows; `cov` has a tile for every pair.
        unsafe {
            let (z, cov) = (self.z.as_ptr(), self.cov.as_mut_ptr());
            // Several blocks on the left share each on the right while it is in the cache.
            for some in (0..blocks).step_by(LEFT) {
                for j in some..blocks {
                    for i in some..(some + LEFT).min(j + 1) {
                        let here = cov.add((j * (j + 1) / 2 + i) * T * T * V::W);
                        let mut acc = load_tile::<V, T>(here);
                        let (left, right) = (z.add(i * stride), z.add(j * stride));
                        tile::<V, T, false>(&mut acc, left, right, 0, rows);
                        store_tile(&acc, here);
                    }
                }
            }
        }
    }

    /// Sum of Sigma = sum of V - Z^T Z, both triangles.
    fn hand_over_cov<V: Lanes, const T: usize>(
        &self,
        task: &Task,
        rows: &[usize],
        out: &mut Answer,
    ) {
        let m = task.m();
        let mut tiles = self.cov.chunks_exact(T * T * V::W);
        for j in 0..m.div_ceil(T) {
            for i in 0..=j {
                let Some(values) = tiles.next() else { return };
                for (index, lanes) in values.chunks_exact(V::W).enumerate() {
                    let (row, column) = (i * T + index / T, j * T + index % T);
                    if row <= column && column < m {
                        let sum: f64 = lanes.iter().sum();
                        out.cov[row * m + column] -= sum;
                        if row != column {
                            out.cov[column * m + row] -= sum;
                        }
                    }
                }
            }
        }
        for &row in rows {
            for (k, &v) in task.v_row(row).iter().enumerate() {
                out.cov[k * m + k] += v;
            }
        }
    }
}

/// acc[i][k] += sum over q of left[q][i] right[q][k], the right side being the same in all lanes.
///
/// # Safety
/// `left` is readable for depth * T registers, `right` for depth * T numbers.
#[inline(always)]
unsafe fn shared_tile<V: Lanes, const T: usize>(
    acc: &mut [[V; T]; T],
    left: *const f64,
    right: *const f64,
    depth: usize,
) {
    for q in 0..depth {
        // SAFETY: q < depth.
        unsafe {
            let mut l = [V::splat(0.0); T];
            for i in 0..T {
                l[i] = V::load(left.add((q * T + i) * V::W));
            }
            for k in 0..T {
                let r = V::splat(*right.add(q * T + k));
                for i in 0..T {
                    acc[i][k] = acc[i][k].fma(l[i], r);
                }
            }
        }
    }
}
