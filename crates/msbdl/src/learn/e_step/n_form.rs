//! Computes posteriors through S = s I + D V D^T (N x N): right while most of v is alive.

use super::lanes::Lanes;
use super::pairs::Pairs;
use super::panel::{Begin, Shape, eliminate, load_tile, store_tile};
use super::sums::Sums;
use super::{Answer, Task};
use crate::support::buffer::Buffer;
use crate::support::logs::sum_of_logs;

/// Z of several groups is summed at once, as far as it fits the cache.
const Z_BYTES: usize = 1 << 17;
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
    let pairs = Pairs::new::<V, T>(task, shape);
    // Pairs come for two groups at once.
    let multiple = if pairs.is_some() { 2 } else { 1 };
    let deep = (Z_BYTES / (8 * n * m * V::W)).clamp(1, 8).next_multiple_of(multiple);
    let learn = !out.cov.is_empty();
    let mut work = Work {
        shape,
        panel: Buffer::stale(shape.len::<V, T>()),
        pairs,
        last: last_block::<V, T>(task, shape),
        v: Buffer::zeros(deep * m * V::W),
        t: Buffer::stale(m.next_multiple_of(T) * V::W),
        b: Buffer::stale(m.next_multiple_of(T) * V::W),
        scaled: Buffer::stale(AT_ONCE.min(m) * T * V::W),
        packed: pack::<T>(task),
        deep,
        z: Buffer::stale(if learn { m.next_multiple_of(T) * n * deep * V::W } else { 0 }),
    };
    let mut sums = learn.then(|| Sums::new::<V, T>(deep * n, m));
    for some in rows.chunks(V::W * work.deep) {
        if some.len() < V::W * work.deep {
            work.z.fill(0.0);
        }
        work.load_v::<V>(task, some);
        for (place, group) in some.chunks(V::W).enumerate() {
            work.load_y::<V, T>(task, group);
            // SAFETY: the buffers were sized for this shape just above.
            unsafe {
                match &mut work.pairs {
                    Some(pairs) => pairs.form::<V>(&work.v, m, place),
                    None => work.form_s::<V, T>(task, place),
                }
                let direct = work.direct::<V, T>(task, place);
                let begin = Augmented {
                    square: work.pairs.as_ref().map(|pairs| pairs.square(place)),
                    packed: &work.packed,
                    last: &work.last,
                    shape,
                    m,
                    direct,
                };
                eliminate::<V, T>(&mut work.panel, &begin, shape, false);
                work.read_out::<V, T>(task, group, place, direct, out);
            }
        }
        if let Some(sums) = &mut sums {
            // SAFETY: z has deep * n rows in every block.
            unsafe { sums.add::<V, T>(&work.z, deep * n) };
        }
    }
    if let Some(sums) = sums {
        sums.hand_over::<V, T>(task, rows, out);
    }
}

struct Work<'a> {
    shape: Shape,
    panel: Buffer,
    /// For forming S, where there are few features.
    pairs: Option<Pairs<'a>>,
    /// The last block of [D | y], D the same in all lanes.
    last: Buffer,
    /// Variances of some groups: [group][atom][lane].
    v: Buffer,
    /// t and b of a group: [atom][lane].
    t: Buffer,
    b: Buffer,
    /// v[m] d[p][m] for one block of rows p and some atoms m.
    scaled: Buffer,
    /// D by blocks of rows, filled up with noughts: [block][m][T].
    packed: Buffer,
    /// Groups that `z` holds.
    deep: usize,
    /// Z = U^-T D V of some groups: [block of atoms][group][row][T][lane].
    z: Buffer,
}

fn pack<const T: usize>(task: &Task) -> Buffer {
    let mut packed = Buffer::zeros(task.n().next_multiple_of(T) * task.m());
    for ((p, k), &x) in task.d.indexed_iter() {
        packed[(p / T * task.m() + k) * T + p % T] = x;
    }
    packed
}

/// Atoms of the block that y is in, and y, still nought.
fn last_block<V: Lanes, const T: usize>(task: &Task, shape: Shape) -> Buffer {
    let (n, m) = (task.n(), task.m());
    let mut last = Buffer::zeros(shape.stride::<V, T>());
    for k in m / T * T..m {
        for p in 0..n {
            let here = shape.at::<V, T>(p, k % T);
            last[here..here + V::W].fill(task.d[[p, k]]);
        }
    }
    last
}

/// Z = U^-T D V, solved for where it is to be: all blocks of atoms but the one that y is in.
#[derive(Clone, Copy)]
struct Direct {
    /// Variances of the group: [atom][lane].
    v: *const f64,
    /// The group's rows in the first block of Z, and how far those in the next block are.
    z: *mut f64,
    stride: usize,
    n: usize,
    blocks: usize,
}

impl Direct {
    /// Where block `c` of Z is.
    fn block(&self, c: usize) -> Option<*mut f64> {
        // SAFETY: Z has as many blocks, `stride` apart.
        (c < self.blocks).then(|| unsafe { self.z.add(c * self.stride) })
    }
}

/// [S | D | y], or, if Z is solved for, [S | D V | y] with D itself in the block of y.
struct Augmented<'a> {
    /// S, if it is not in the panel.
    square: Option<&'a [f64]>,
    packed: &'a [f64],
    last: &'a [f64],
    shape: Shape,
    m: usize,
    direct: Option<Direct>,
}

impl<V: Lanes, const T: usize> Begin<V, T> for Augmented<'_> {
    #[inline(always)]
    unsafe fn tile(&self, c: usize, r: usize, here: *const f64) -> [[V; T]; T] {
        let tile_at = r * T * T * V::W;
        // SAFETY: block and row are within the shape that the arrays were made for.
        unsafe {
            let Some(c) = c.checked_sub(self.shape.square::<T>()) else {
                let stride = self.shape.stride::<V, T>();
                return load_tile(match self.square {
                    Some(square) => square.as_ptr().add(c * stride + tile_at),
                    None => here,
                });
            };
            if c == self.m / T {
                return load_tile(self.last.as_ptr().add(tile_at));
            }
            let d = self.packed.as_ptr().add((r * self.m + c * T) * T);
            let mut tile = [[V::splat(0.0); T]; T];
            for i in 0..T {
                for k in 0..T {
                    tile[i][k] = V::splat(*d.add(k * T + i));
                }
            }
            if let Some(direct) = self.direct {
                for k in 0..T {
                    let v = V::load(direct.v.add((c * T + k) * V::W));
                    for i in 0..T {
                        tile[i][k] = tile[i][k].mul(v);
                    }
                }
            }
            tile
        }
    }

    #[inline(always)]
    fn elsewhere(&self, c: usize) -> Option<(*mut f64, usize)> {
        let direct = self.direct?;
        Some((direct.block(c.checked_sub(self.shape.square::<T>())?)?, direct.n))
    }
}

impl Work<'_> {
    /// Solves for Z at once if it is to be summed, unless t and b are asked for where v is nought, as
    /// it also is in lanes without a sample.
    fn direct<V: Lanes, const T: usize>(&mut self, task: &Task, place: usize) -> Option<Direct> {
        let (n, m) = (task.n(), task.m());
        let v = &self.v[place * m * V::W..(place + 1) * m * V::W];
        let all_alive = || v.iter().all(|v| *v > super::ALIVE * task.s);
        if self.z.is_empty() || (task.want.slopes && !all_alive()) {
            return None;
        }
        let rows = n * T * V::W;
        let z = self.z[place * rows..].as_mut_ptr();
        Some(Direct { v: v.as_ptr(), z, stride: self.deep * rows, n, blocks: m / T })
    }

    /// Puts the variances of some groups into `v`.
    fn load_v<V: Lanes>(&mut self, task: &Task, some: &[usize]) {
        if !some.len().is_multiple_of(V::W) {
            self.v.fill(0.0);
        }
        for (v, group) in self.v.chunks_exact_mut(task.m() * V::W).zip(some.chunks(V::W)) {
            for (lane, &row) in group.iter().enumerate() {
                for (v, &x) in v.chunks_exact_mut(V::W).zip(task.v_row(row)) {
                    v[lane] = x;
                }
            }
        }
    }

    /// Puts y into the last block.
    fn load_y<V: Lanes, const T: usize>(&mut self, task: &Task, group: &[usize]) {
        let column = task.m() % T;
        for (lane, &row) in group.iter().enumerate() {
            for (p, &x) in task.y_row(row).iter().enumerate() {
                self.last[self.shape.at::<V, T>(p, column) + lane] = x;
            }
        }
    }

    /// S[p][q] = s delta + sum_m v[m] d[p][m] d[q][m], upper tiles.
    #[inline(always)]
    unsafe fn form_s<V: Lanes, const T: usize>(&mut self, task: &Task, place: usize) {
        let (m, count) = (task.m(), self.shape.square::<T>());
        let stride = self.shape.stride::<V, T>();
        let v = &self.v[place * m * V::W..];
        for pb in 0..count {
            for from in (0..m).step_by(AT_ONCE) {
                let some = AT_ONCE.min(m - from);
                // SAFETY: offsets stay below the buffers' lengths (m, rows and T bound them).
                unsafe {
                    let d = |block: usize| self.packed.as_ptr().add((block * m + from) * T);
                    let scaled = self.scaled.as_mut_ptr();
                    for k in 0..some {
                        let v = V::load(v.as_ptr().add((from + k) * V::W));
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
        direct: Option<Direct>,
        out: &mut Answer,
    ) {
        let (n, m, at) = (task.n(), task.m(), self.shape);
        let w = at.at::<V, T>(0, at.rows + m);
        let keep = !self.z.is_empty();
        for block in 0..m.div_ceil(T) {
            // SAFETY: this block of the right-hand side and column m have `rows` rows; z has
            // n rows for every group and as many blocks as t and b.
            unsafe {
                let w = self.panel.as_ptr().add(w);
                let (mut sum_t, mut sum_b) = ([V::splat(0.0); T], [V::splat(0.0); T]);
                let mut v = [V::splat(0.0); T];
                for i in 0..T.min(m - block * T) {
                    v[i] = V::load(self.v.as_ptr().add((place * m + block * T + i) * V::W));
                }
                if let Some(z) = direct.and_then(|direct| direct.block(block)) {
                    add_products::<V, T>(&mut sum_t, &mut sum_b, z, w, n);
                    for i in 0..T {
                        // 1 / v, and nought where v is.
                        let square = V::splat(f64::MIN_POSITIVE).fma(v[i], v[i]);
                        let inverse = v[i].div(square);
                        sum_t[i] = sum_t[i].mul(inverse);
                        sum_b[i] = sum_b[i].mul(inverse).mul(inverse);
                    }
                } else {
                    let x = self.panel.as_ptr().add(at.at::<V, T>(0, at.rows + block * T));
                    add_products::<V, T>(&mut sum_t, &mut sum_b, x, w, n);
                    if keep {
                        let z = self.z.as_mut_ptr();
                        let z = z.add((block * self.deep + place) * n * T * V::W);
                        for p in 0..n {
                            for i in 0..T {
                                let here = (p * T + i) * V::W;
                                V::load(x.add(here)).mul(v[i]).store(z.add(here));
                            }
                        }
                    }
                }
                for i in 0..T {
                    sum_t[i].store(self.t.as_mut_ptr().add((block * T + i) * V::W));
                    sum_b[i].store(self.b.as_mut_ptr().add((block * T + i) * V::W));
                }
            }
        }
        for (lane, &row) in group.iter().enumerate() {
            let lane_of = |values: &Buffer, to: &mut [f64]| {
                let from = values.chunks_exact(V::W);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from[lane]);
            };
            lane_of(&self.t, &mut out.t[row * m..(row + 1) * m]);
            lane_of(&self.b, &mut out.b[row * m..(row + 1) * m]);
            out.quad[row] = (0..n).map(|p| self.panel[w + p * T * V::W + lane].powi(2)).sum();
            out.log_det[row] =
                -2.0 * sum_of_logs((0..n).map(|p| self.panel[at.at::<V, T>(p, p) + lane]));
        }
    }
}

/// Adds x^T w to `t` and the squares of x to `b`, over `n` rows of a block.
///
/// # Safety
/// `x` is readable for n * T registers, `w` for one in T of as many.
#[inline(always)]
unsafe fn add_products<V: Lanes, const T: usize>(
    t: &mut [V; T],
    b: &mut [V; T],
    x: *const f64,
    w: *const f64,
    n: usize,
) {
    for p in 0..n {
        // SAFETY: p < n.
        unsafe {
            let w = V::load(w.add(p * T * V::W));
            for i in 0..T {
                let x = V::load(x.add((p * T + i) * V::W));
                t[i] = t[i].fma(x, w);
                b[i] = b[i].fma(x, x);
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
