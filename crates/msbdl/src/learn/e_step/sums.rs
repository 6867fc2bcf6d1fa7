//! Sums Z^T Z of many samples, by tiles of lanes, and hands over the sum of Sigma.

use super::lanes::Lanes;
use super::panel::{load_tile, store_tile, tile};
use super::{Answer, Task};
use crate::support::buffer::Buffer;

/// Bytes of the rows of a block of Z that are summed at once, per lane (wide registers have more
/// sums to load and store), and of the blocks that share one on their right: together they stay in
/// the first-level cache.
const ROWS_BYTES: usize = 1 << 11;
const LEFT_BYTES: usize = 20_000;

/// acc += sum over rows `from..to` of a[row][i] * b[row][k] for k below `K`, and of these for k
/// from i on if `DIAGONAL`: what is wanted of tiles at the edge and on the diagonal.
///
/// # Safety
/// `a` and `b` point to blocks of at least `to` rows.
#[inline(always)]
unsafe fn part_of_tile<V: Lanes, const T: usize, const K: usize, const DIAGONAL: bool>(
    acc: &mut [[V; T]; T],
    a: *const f64,
    b: *const f64,
    from: usize,
    to: usize,
) {
    for row in from..to {
        // SAFETY: row < to, within both blocks.
        unsafe {
            let mut right = [V::splat(0.0); T];
            for k in 0..K.min(T) {
                right[k] = V::load(b.add((row * T + k) * V::W));
            }
            for i in 0..T {
                let left = V::load(a.add((row * T + i) * V::W));
                for k in if DIAGONAL { i } else { 0 }..K.min(T) {
                    acc[i][k] = acc[i][k].fma(left, right[k]);
                }
            }
        }
    }
}

/// Z^T Z in the order in which it is summed.
pub(super) struct Sums {
    /// Rows of Z at once.
    slice: usize,
    /// Blocks i <= j of every tile: several i share a j.
    tiles: Vec<(usize, usize)>,
    /// Lane-wise sums: [tile][T][T][lane].
    values: Buffer,
    /// Atoms.
    m: usize,
}

impl Sums {
    /// For `rows` rows of `m` atoms.
    pub fn new<V: Lanes, const T: usize>(rows: usize, m: usize) -> Self {
        let row = 8 * T * V::W;
        let slice = rows.div_ceil((rows * row).div_ceil(ROWS_BYTES * V::W));
        let left = (LEFT_BYTES / (slice * row)).max(1);
        let blocks = m.div_ceil(T);
        let tiles = (0..blocks).step_by(left).flat_map(|some| {
            let shared_by = move |j: usize| some..(some + left).min(j + 1);
            (some..blocks).flat_map(move |j| shared_by(j).map(move |i| (i, j)))
        });
        let tiles: Vec<_> = tiles.collect();
        let values = Buffer::zeros(tiles.len() * T * T * V::W);
        Sums { slice, tiles, values, m }
    }

    /// Adds Z^T Z of `rows` rows, lane by lane.
    ///
    /// # Safety
    /// `z` has blocks of `rows` rows for all atoms.
    #[inline(always)]
    pub unsafe fn add<V: Lanes, const T: usize>(&mut self, z: &[f64], rows: usize) {
        let stride = rows * T * V::W;
        for from in (0..rows).step_by(self.slice) {
            let to = (from + self.slice).min(rows);
            let sums = self.values.chunks_exact_mut(T * T * V::W);
            for (&(i, j), sums) in self.tiles.iter().zip(sums) {
                // SAFETY: i and j are blocks of z, which have `rows` rows; sums has a tile.
                unsafe {
                    let mut acc = load_tile::<V, T>(sums.as_ptr());
                    let (left, right) = (z.as_ptr().add(i * stride), z.as_ptr().add(j * stride));
                    match (self.m - j * T).min(T) {
                        width if width == T && i == j => {
                            part_of_tile::<V, T, T, true>(&mut acc, left, right, from, to)
                        }
                        width if width == T => tile::<V, T, false>(&mut acc, left, right, from, to),
                        1 => part_of_tile::<V, T, 1, false>(&mut acc, left, right, from, to),
                        2 => part_of_tile::<V, T, 2, false>(&mut acc, left, right, from, to),
                        3 => part_of_tile::<V, T, 3, false>(&mut acc, left, right, from, to),
                        // Four of five are not worth a loop of their own.
                        _ => tile::<V, T, false>(&mut acc, left, right, from, to),
                    }
                    store_tile(&acc, sums.as_mut_ptr());
                }
            }
        }
    }

    /// Sum of Sigma = sum of V - Z^T Z, both triangles.
    pub fn hand_over<V: Lanes, const T: usize>(
        &self,
        task: &Task,
        rows: &[usize],
        out: &mut Answer,
    ) {
        let m = task.m();
        for (&(i, j), sums) in self.tiles.iter().zip(self.values.chunks_exact(T * T * V::W)) {
            for (index, lanes) in sums.chunks_exact(V::W).enumerate() {
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
        for &row in rows {
            for (k, &v) in task.v_row(row).iter().enumerate() {
                out.cov[k * m + k] += v;
            }
        }
    }
}
