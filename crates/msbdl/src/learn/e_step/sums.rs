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

/// Z^T Z in the order in which it is summed.
pub(super) struct Sums {
    /// Rows of Z at once.
    slice: usize,
    /// Blocks i <= j of every tile: several i share a j.
    tiles: Vec<(usize, usize)>,
    /// Lane-wise sums: [tile][T][T][lane].
    values: Buffer,
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
        Sums { slice, tiles, values }
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
                    tile::<V, T, false>(&mut acc, left, right, from, to);
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
