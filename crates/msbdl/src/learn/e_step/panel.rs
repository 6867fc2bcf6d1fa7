//! Eliminates a symmetric system and its right-hand sides for `W` samples at once.
//!
//! An augmented matrix [S | X] of `rows` rows is cut into column blocks of `T` columns and
//! stored as [block][row][T][lane], so that the inner loop of factoring, solving and summing
//! products is one tile of T x T registers over two blocks.

use super::lanes::Lanes;

/// Where the elements of an augmented matrix are; `rows` is a multiple of `T`.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub rows: usize,
    pub blocks: usize,
}

impl Shape {
    /// Room for a square part of `n` rows and `rhs` right-hand columns.
    pub fn new<const T: usize>(n: usize, rhs: usize) -> Self {
        let rows = n.next_multiple_of(T);
        Shape { rows, blocks: rows / T + rhs.div_ceil(T) }
    }

    pub fn len<V: Lanes, const T: usize>(self) -> usize {
        self.blocks * self.stride::<V, T>()
    }

    /// Blocks of the square part.
    pub fn square<const T: usize>(self) -> usize {
        self.rows / T
    }

    /// Values in a block.
    pub fn stride<V: Lanes, const T: usize>(self) -> usize {
        self.rows * T * V::W
    }

    /// Values in the right-hand blocks.
    pub fn rhs_len<V: Lanes, const T: usize>(self) -> usize {
        (self.blocks - self.square::<T>()) * self.stride::<V, T>()
    }

    /// Offset of element (row, column); columns count from the first of the square part.
    #[inline(always)]
    pub fn at<V: Lanes, const T: usize>(self, row: usize, column: usize) -> usize {
        ((column / T * self.rows + row) * T + column % T) * V::W
    }
}

/// acc -= (SUB) or += sum over rows `from..to` of a[row][i] * b[row][k].
///
/// # Safety
/// `a` and `b` point to blocks of at least `to` rows.
#[inline(always)]
pub(super) unsafe fn tile<V: Lanes, const T: usize, const SUB: bool>(
    acc: &mut [[V; T]; T],
    a: *const f64,
    b: *const f64,
    from: usize,
    to: usize,
) {
    for row in from..to {
        // SAFETY: row < to, within both blocks.
        unsafe {
            let (pa, pb) = (a.add(row * T * V::W), b.add(row * T * V::W));
            let mut right = [V::splat(0.0); T];
            for k in 0..T {
                right[k] = V::load(pb.add(k * V::W));
            }
            for (i, acc_row) in acc.iter_mut().enumerate() {
                let left = V::load(pa.add(i * V::W));
                for k in 0..T {
                    acc_row[k] = if SUB {
                        acc_row[k].fnma(left, right[k])
                    } else {
                        acc_row[k].fma(left, right[k])
                    };
                }
            }
        }
    }
}

/// # Safety
/// `p` is readable for T * T registers.
#[inline(always)]
pub(super) unsafe fn load_tile<V: Lanes, const T: usize>(p: *const f64) -> [[V; T]; T] {
    // SAFETY: as the caller vouches.
    unsafe {
        let mut tile = [[V::splat(0.0); T]; T];
        for i in 0..T {
            for k in 0..T {
                tile[i][k] = V::load(p.add((i * T + k) * V::W));
            }
        }
        tile
    }
}

/// # Safety
/// `p` is writable for T * T registers.
#[inline(always)]
pub(super) unsafe fn store_tile<V: Lanes, const T: usize>(tile: &[[V; T]; T], p: *mut f64) {
    for i in 0..T {
        for k in 0..T {
            // SAFETY: as the caller vouches.
            unsafe { tile[i][k].store(p.add((i * T + k) * V::W)) };
        }
    }
}

/// The first `count` rows of a tile.
///
/// # Safety
/// `p` is writable for count * T registers.
#[inline(always)]
unsafe fn store_rows<V: Lanes, const T: usize>(tile: &[[V; T]; T], p: *mut f64, count: usize) {
    for (i, row) in tile.iter().enumerate().take(count) {
        for k in 0..T {
            // SAFETY: as the caller vouches.
            unsafe { row[k].store(p.add((i * T + k) * V::W)) };
        }
    }
}

/// Blocks that are eliminated together.
const TOGETHER: usize = 4;

/// Where elimination finds the tiles of [S | X] that it begins with.
pub(super) trait Begin<V: Lanes, const T: usize> {
    /// The tile of rows r T.. in block `c`; `here` is where its solution goes.
    ///
    /// # Safety
    /// `c` and `r` are within the shape, and `here`, if it is in the panel, is readable for T * T
    /// registers.
    unsafe fn tile(&self, c: usize, r: usize, here: *const f64) -> [[V; T]; T];

    /// Where the solution of right-hand block `c` is to be, if not in the panel, and how many rows
    /// are kept there: more than the shape has in all tiles but the last.
    #[inline(always)]
    fn elsewhere(&self, _c: usize) -> Option<(*mut f64, usize)> {
        None
    }
}

/// S from the panel itself, X from an array that is laid out like the panel's right-hand blocks.
pub(super) struct Beside<'a> {
    pub rhs: &'a [f64],
    pub shape: Shape,
}

impl<V: Lanes, const T: usize> Begin<V, T> for Beside<'_> {
    #[inline(always)]
    unsafe fn tile(&self, c: usize, r: usize, here: *const f64) -> [[V; T]; T] {
        debug_assert_eq!(self.rhs.len(), self.shape.rhs_len::<V, T>());
        // SAFETY: block and row are within the shape that `rhs` was made for.
        unsafe {
            match c.checked_sub(self.shape.square::<T>()) {
                None => load_tile(here),
                Some(c) => {
                    let there = c * self.shape.stride::<V, T>() + r * T * T * V::W;
                    load_tile(self.rhs.as_ptr().add(there))
                }
            }
        }
    }
}

/// Turns [S | X] into [U | U^-T X] with U^T U = S; the diagonal of U is stored inverted.
///
/// Only the upper part of S is read. With `identity`, X begins with a unit matrix as large as S,
/// and the zeros of its solution are skipped.
///
/// # Safety
/// `panel` holds `shape.len()` values, and `begin` knows all tiles; what it has elsewhere is
/// writable. S is positive definite in every lane.
#[inline(always)]
pub(super) unsafe fn eliminate<V: Lanes, const T: usize>(
    panel: &mut [f64],
    begin: &impl Begin<V, T>,
    shape: Shape,
    identity: bool,
) {
    let (square, stride) = (shape.square::<T>(), shape.stride::<V, T>());
    debug_assert_eq!(panel.len(), shape.len::<V, T>());
    let base = panel.as_mut_ptr();
    for group in (0..shape.blocks).step_by(TOGETHER) {
        let end = (group + TOGETHER).min(shape.blocks);
        // Row by row within a group: what its columns do in a row does not wait for one another,
        // and shares a block of U.
        for r in 0..end.min(square) {
            for c in group.max(r)..end {
                let unit = identity && (square..2 * square).contains(&c);
                let first = if unit { c - square } else { 0 };
                if r < first {
                    continue;
                }
                // SAFETY: every offset is below shape.len(), since block < blocks and row < rows, or
                // among the rows that `elsewhere` has room for.
                unsafe {
                    let left = base.add(r * stride);
                    let elsewhere = begin.elsewhere(c);
                    let (column, rows) = elsewhere.unwrap_or((base.add(c * stride), shape.rows));
                    let tile_at = r * T * T * V::W;
                    let mut acc = begin.tile(c, r, column.add(tile_at));
                    tile::<V, T, true>(&mut acc, left, column, first * T, r * T);
                    if r == c {
                        factor(&mut acc);
                    } else {
                        solve(&mut acc, left.add(tile_at));
                    }
                    if (r + 1) * T <= rows {
                        store_tile(&acc, column.add(tile_at));
                    } else {
                        store_rows(&acc, column.add(tile_at), rows - r * T);
                    }
                }
            }
        }
    }
}

/// Cholesky factor of one diagonal tile, upper, inverse on the diagonal.
#[inline(always)]
unsafe fn factor<V: Lanes, const T: usize>(acc: &mut [[V; T]; T]) {
    // SAFETY: arithmetic only.
    unsafe {
        for i in 0..T {
            let inverse = V::splat(1.0).div(acc[i][i].sqrt());
            acc[i][i] = inverse;
            for k in i + 1..T {
                acc[i][k] = acc[i][k].mul(inverse);
            }
            for r in i + 1..T {
                for k in r..T {
                    acc[r][k] = acc[r][k].fnma(acc[i][r], acc[i][k]);
                }
            }
        }
    }
}

/// Solves U^T X = acc for one tile; `u` points to a factored diagonal tile.
#[inline(always)]
unsafe fn solve<V: Lanes, const T: usize>(acc: &mut [[V; T]; T], u: *const f64) {
    for i in 0..T {
        // SAFETY: `u` has T * T * W values.
        unsafe {
            let inverse = V::load(u.add((i * T + i) * V::W));
            for k in 0..T {
                acc[i][k] = acc[i][k].mul(inverse);
            }
            for r in i + 1..T {
                let factor = V::load(u.add((i * T + r) * V::W));
                for k in 0..T {
                    acc[r][k] = acc[r][k].fnma(factor, acc[i][k]);
                }
            }
        }
    }
}
