//! Computes t and b of all atoms, in use or not, from the factor of those in use.
//!
//! Atoms are in the lanes here, one sample at a time: with Sigma_A = F^T F,
//!     t = (D^T y - G mu) / s   and   b = (diag G - columns of |F G|^2 / s) / s.

use super::lanes::Lanes;
use super::{Answer, Task};

/// Rows of the Gram matrix are filled up to a multiple of this, the widest register.
pub(super) const PAD: usize = 8;

/// The most registers of atoms that pass by F together.
const TOGETHER: usize = 4;
/// Rows of F that pass by an atom together: with the above, eight sums hide the latency.
const ROWS: usize = 2;

/// An atom in use.
pub(super) struct Near {
    /// Its row of the Gram matrix.
    pub gram: *const f64,
    pub mu: f64,
    /// Its column of F, which is k x k and lower triangular.
    pub column: *const f64,
}

impl Near {
    /// Adds to rows `from..` of the product F G what this atom brings.
    ///
    /// # Safety
    /// As for `Slopes::write`.
    #[inline(always)]
    unsafe fn pass<V: Lanes, const B: usize, const R: usize>(
        &self,
        z: &mut [[V; B]; R],
        from: usize,
        first: usize,
        row: usize,
        down: usize,
    ) {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut g = [V::splat(0.0); B];
            for i in 0..B {
                g[i] = V::load(self.gram.add(first + i * V::W));
            }
            for q in from..R {
                let f = V::splat(*self.column.add((row + q) * down));
                for i in 0..B {
                    z[q][i] = z[q][i].fma(f, g[i]);
                }
            }
        }
    }
}

/// The atoms that a sample uses, and room for what is made of them.
#[derive(Default)]
pub(super) struct Slopes {
    pub near: Vec<Near>,
    projection: Vec<f64>,
    t: Vec<f64>,
    explained: Vec<f64>,
}

impl Slopes {
    /// Writes t and b of every atom; those in use lose digits and have better ways.
    ///
    /// # Safety
    /// The processor has the instruction set of `V`. Of each atom in `near`, the row of the Gram
    /// matrix is filled up to a multiple of `PAD`, and the column has k values, `down` apart.
    #[inline(always)]
    pub unsafe fn write<V: Lanes>(
        &mut self,
        task: &Task,
        row: usize,
        down: usize,
        out: &mut Answer,
    ) {
        let (m, scale) = (task.m(), 1.0 / task.s);
        let width = m.next_multiple_of(PAD);
        self.projection.resize(width, 0.0);
        self.projection[..m].copy_from_slice(task.projection_row(row));
        self.t.resize(width, 0.0);
        self.explained.resize(width, 0.0);
        // In parts of nearly the same size: a single register would wait for its own sums.
        let registers = m.div_ceil(V::W);
        let parts = registers.div_ceil(TOGETHER);
        for part in 0..parts {
            let (from, to) = (part * registers / parts, (part + 1) * registers / parts);
            // SAFETY: all rows have `width` values, which fill every register.
            unsafe {
                match to - from {
                    1 => self.some::<V, 1>(from * V::W, down),
                    2 => self.some::<V, 2>(from * V::W, down),
                    3 => self.some::<V, 3>(from * V::W, down),
                    _ => self.some::<V, TOGETHER>(from * V::W, down),
                }
            }
        }
        let here = row * m..(row + 1) * m;
        out.t[here.clone()].iter_mut().zip(&self.t).for_each(|(to, t)| *to = t * scale);
        let b = out.b[here].iter_mut().zip(&self.explained).enumerate();
        b.for_each(|(k, (to, explained))| *to = (task.square_of(k) - explained * scale) * scale);
    }

    /// `B` registers of atoms.
    #[inline(always)]
    unsafe fn some<V: Lanes, const B: usize>(&mut self, first: usize, down: usize) {
        // SAFETY: the caller vouches for `near`; the others have as many values.
        unsafe {
            let mut t = [V::splat(0.0); B];
            for (i, t) in t.iter_mut().enumerate() {
                *t = V::load(self.projection.as_ptr().add(first + i * V::W));
            }
            for near in &self.near {
                let mu = V::splat(near.mu);
                for (i, t) in t.iter_mut().enumerate() {
                    *t = t.fnma(mu, V::load(near.gram.add(first + i * V::W)));
                }
            }
            let (mut explained, mut row) = ([V::splat(0.0); B], 0);
            while row + ROWS <= self.near.len() {
                self.explain::<V, B, ROWS>(&mut explained, first, row, down);
                row += ROWS;
            }
            while row < self.near.len() {
                self.explain::<V, B, 1>(&mut explained, first, row, down);
                row += 1;
            }
            for i in 0..B {
                t[i].store(self.t.as_mut_ptr().add(first + i * V::W));
                explained[i].store(self.explained.as_mut_ptr().add(first + i * V::W));
            }
        }
    }

    /// Adds the squares of `R` rows of F G.
    #[inline(always)]
    unsafe fn explain<V: Lanes, const B: usize, const R: usize>(
        &self,
        explained: &mut [V; B],
        first: usize,
        row: usize,
        down: usize,
    ) {
        // SAFETY: as for `some`; rows are below k.
        unsafe {
            let mut z = [[V::splat(0.0); B]; R];
            for near in &self.near[..=row] {
                near.pass::<V, B, R>(&mut z, 0, first, row, down);
            }
            // Above the diagonal F was never written.
            for q in 1..R {
                self.near[row + q].pass::<V, B, R>(&mut z, q, first, row, down);
            }
            for z in z {
                for (explained, z) in explained.iter_mut().zip(z) {
                    *explained = explained.fma(z, z);
                }
            }
        }
    }
}
