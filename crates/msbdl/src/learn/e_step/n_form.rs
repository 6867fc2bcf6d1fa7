//! Computes posteriors through S = s I + D V D^T (N x N): right while most of v is alive.

use super::lanes::Lanes;
use super::panel::{Shape, eliminate, load_tile, store_tile, tile};
use super::{Answer, Task};

/// Z of several groups is summed at once, as far as it fits the cache.
const Z_BYTES: usize = 1 << 17;

/// Answers `task` for the samples in `rows`, `V::W` at a time.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes, const T: usize>(task: &Task, rows: &[usize], out: &mut Answer) {
    let (n, m) = (task.n(), task.m());
    let shape = Shape::new::<T>(n, m + 1);
    let deep = (Z_BYTES / (8 * n * m * V::W)).clamp(1, 8);
    let mut work = Work {
        shape,
        panel: vec![0.0; shape.len::<V, T>()],
        rhs: spread::<V, T>(task, shape),
        v: vec![0.0; m * V::W],
        scaled: vec![0.0; m * T * V::W],
        packed: pack::<T>(task, shape.rows),
        deep,
        z: vec![0.0; m.next_multiple_of(T) * n * deep * V::W],
        cov: vec![0.0; if out.cov.is_empty() { 0 } else { cov_len::<V, T>(m) }],
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
        if !work.cov.is_empty() {
            // SAFETY: z has deep * n rows in every block.
            unsafe { work.add_cov::<V, T>(n, m) };
        }
    }
    if !work.cov.is_empty() {
        work.hand_over_cov::<V, T>(task, rows, out);
    }
}

struct Work {
    shape: Shape,
    panel: Vec<f64>,
    /// [D | y], D the same in all lanes.
    rhs: Vec<f64>,
    v: Vec<f64>,
    /// v[m] d[p][m] for one block of rows p.
    scaled: Vec<f64>,
    /// D^T with the rows of D padded by zeros: [m][rows].
    packed: Vec<f64>,
    /// Groups that `z` holds.
    deep: usize,
    /// Z = U^-T D V of some groups: [block of atoms][group][row][T][lane].
    z: Vec<f64>,
    /// Lane-wise sums of Z^T Z, tile by tile of the upper triangle.
    cov: Vec<f64>,
}

fn pack<const T: usize>(task: &Task, rows: usize) -> Vec<f64> {
    let mut packed = vec![0.0; task.m() * rows];
    for (p, row) in task.d.rows().into_iter().enumerate() {
        for (k, &x) in row.iter().enumerate() {
            packed[k * rows + p] = x;
        }
    }
    packed
}

/// [D | 0] in the layout of the right-hand blocks.
fn spread<V: Lanes, const T: usize>(task: &Task, shape: Shape) -> Vec<f64> {
    let mut rhs = vec![0.0; shape.rhs_len::<V, T>()];
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
        let (m, rows) = (task.m(), self.shape.rows);
        let stride = rows * T * V::W;
        for pb in 0..rows / T {
            // SAFETY: offsets stay below the buffers' lengths (m, rows and T bound them).
            unsafe {
                let scaled = self.scaled.as_mut_ptr();
                for k in 0..m {
                    let v = V::load(self.v.as_ptr().add(k * V::W));
                    for i in 0..T {
                        let d = V::splat(*self.packed.as_ptr().add(k * rows + pb * T + i));
                        v.mul(d).store(scaled.add((k * T + i) * V::W));
                    }
                }
                for qb in pb..rows / T {
                    let mut acc = [[V::splat(0.0); T]; T];
                    for k in 0..m {
                        let d = self.packed.as_ptr().add(k * rows + qb * T);
                        let mut left = [V::splat(0.0); T];
                        for i in 0..T {
                            left[i] = V::load(scaled.add((k * T + i) * V::W));
                        }
                        for j in 0..T {
                            let right = V::splat(*d.add(j));
                            for i in 0..T {
                                acc[i][j] = acc[i][j].fma(left[i], right);
                            }
                        }
                    }
                    if pb == qb {
                        for (i, row) in acc.iter_mut().enumerate() {
                            row[i] = row[i].add(V::splat(task.s));
                        }
                    }
                    let here = self.panel.as_mut_ptr().add(qb * stride + pb * T * T * V::W);
                    store_tile(&acc, here);
                }
            }
        }
    }

    /// t = D^T S^-1 y, b = diag(D^T S^-1 D), y^T S^-1 y, log|S|; keeps Z = U^-T D V.
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
        for block in 0..m.div_ceil(T) {
            let (mut t, mut b) = ([[0.0; 16]; T], [[0.0; 16]; T]);
            // SAFETY: this block of the right-hand side and column m have `rows` rows; z has
            // n rows for every group and as many blocks.
            unsafe {
                let x = self.panel.as_ptr().add(at.at::<V, T>(0, at.rows + block * T));
                let w = self.panel.as_ptr().add(w);
                let z = self.z.as_mut_ptr().add((block * self.deep + place) * n * T * V::W);
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
                        x.mul(v[i]).store(z.add(here));
                    }
                }
                for i in 0..T {
                    sum_t[i].store(t[i].as_mut_ptr());
                    sum_b[i].store(b[i].as_mut_ptr());
                }
            }
            for i in 0..T.min(m - block * T) {
                for (lane, &row) in group.iter().enumerate() {
                    out.t[row * m + block * T + i] = t[i][lane];
                    out.b[row * m + block * T + i] = b[i][lane];
                }
            }
        }
        for (lane, &row) in group.iter().enumerate() {
            out.quad[row] = (0..n).map(|p| self.panel[w + p * T * V::W + lane].powi(2)).sum();
            out.log_det[row] =
                -2.0 * super::sum_of_logs((0..n).map(|p| self.panel[at.at::<V, T>(p, p) + lane]));
        }
    }

    /// Adds Z^T Z of these groups, lane by lane.
    #[inline(always)]
    unsafe fn add_cov<V: Lanes, const T: usize>(&mut self, n: usize, m: usize) {
        let rows = n * self.deep;
        let stride = rows * T * V::W;
        // SAFETY: blocks of z have `rows` rows; `cov` has a tile for every pair.
        unsafe {
            let z = self.z.as_ptr();
            let mut here = self.cov.as_mut_ptr();
            for i in 0..m.div_ceil(T) {
                for j in i..m.div_ceil(T) {
                    let mut acc = load_tile::<V, T>(here);
                    let (left, right) = (z.add(i * stride), z.add(j * stride));
                    tile::<V, T, false>(&mut acc, left, right, 0, rows);
                    store_tile(&acc, here);
                    here = here.add(T * T * V::W);
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
        for i in 0..m.div_ceil(T) {
            for j in i..m.div_ceil(T) {
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
