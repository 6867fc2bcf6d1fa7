//! Computes t and b of all atoms, in use or not, from the factor of those in use.
//!
//! Atoms are in the lanes here, one sample at a time: with Sigma_A = F^T F,
//!     t = (D^T y - G mu) / s   and   b = (diag G - columns of |F G|^2 / s) / s.

use super::lanes::Lanes;
use super::{Answer, Task};

/// Rows of the Gram matrix are filled up to a multiple of this, the widest register.
pub(super) const PAD: usize = 8;

/// Registers of atoms that pass by F together.
const TOGETHER: usize = 4;
/// Rows of F that pass by an atom together: with the above, eight sums hide the latency.
const ROWS: usize = 2;

/// The posterior of the atoms in use, and room for what is made of it.
#[derive(Default)]
pub(super) struct Slopes {
    pub mu: Vec<f64>,
    /// F, k x k and lower triangular, row by row; an even number of rows.
    pub f: Vec<f64>,
    projection: Vec<f64>,
    t: Vec<f64>,
    explained: Vec<f64>,
}

impl Slopes {
    /// Makes room for `k` atoms in use.
    pub fn clear(&mut self, k: usize) {
        self.mu.clear();
        self.f.clear();
        self.f.resize(k.next_multiple_of(ROWS) * k, 0.0);
    }

    /// Writes t and b of every atom; those in use lose digits and have better ways.
    ///
    /// # Safety
    /// The processor has the instruction set of `V`.
    #[inline(always)]
    pub unsafe fn write<V: Lanes>(
        &mut self,
        task: &Task,
        row: usize,
        active: &[usize],
        out: &mut Answer,
    ) {
        let (m, scale) = (task.m(), 1.0 / task.s);
        let width = m.next_multiple_of(PAD);
        self.projection.resize(width, 0.0);
        self.projection[..m].copy_from_slice(task.projection_row(row));
        self.t.resize(width, 0.0);
        self.explained.resize(width, 0.0);
        let near: Vec<*const f64> = active.iter().map(|&k| task.gram_row(k).as_ptr()).collect();
        debug_assert!(active.iter().all(|&k| task.gram_row(k).len() == width));
        debug_assert_eq!(self.mu.len(), active.len());
        let mut first = 0;
        // SAFETY: all rows have `width` values, a multiple of the register.
        unsafe {
            while first + TOGETHER * V::W <= width {
                self.some::<V, TOGETHER>(&near, first);
                first += TOGETHER * V::W;
            }
            while first < m {
                self.some::<V, 1>(&near, first);
                first += V::W;
            }
        }
        let here = row * m..(row + 1) * m;
        out.t[here.clone()].iter_mut().zip(&self.t).for_each(|(to, t)| *to = t * scale);
        let b = out.b[here].iter_mut().zip(&self.explained).enumerate();
        b.for_each(|(k, (to, explained))| *to = (task.square_of(k) - explained * scale) * scale);
    }

    /// `B` registers of atoms.
    #[inline(always)]
    unsafe fn some<V: Lanes, const B: usize>(&mut self, near: &[*const f64], first: usize) {
        let k = near.len();
        // SAFETY: the caller vouches for `near`; the others have as many values.
        unsafe {
            let mut t = [V::splat(0.0); B];
            for (i, t) in t.iter_mut().enumerate() {
                *t = V::load(self.projection.as_ptr().add(first + i * V::W));
            }
            for (near, &mu) in near.iter().zip(&self.mu) {
                let mu = V::splat(mu);
                for (i, t) in t.iter_mut().enumerate() {
                    *t = t.fnma(mu, V::load(near.add(first + i * V::W)));
                }
            }
            let mut explained = [V::splat(0.0); B];
            for (pair, f) in self.f.chunks_exact(ROWS * k.max(1)).enumerate() {
                let mut z = [[V::splat(0.0); B]; ROWS];
                for (p, near) in near.iter().enumerate().take(ROWS * (pair + 1)) {
                    let mut g = [V::splat(0.0); B];
                    for (i, g) in g.iter_mut().enumerate() {
                        *g = V::load(near.add(first + i * V::W));
                    }
                    for (q, z) in z.iter_mut().enumerate() {
                        let f = V::splat(*f.get_unchecked(q * k + p));
                        for (z, g) in z.iter_mut().zip(g) {
                            *z = z.fma(f, g);
                        }
                    }
                }
                for z in z {
                    for (explained, z) in explained.iter_mut().zip(z) {
                        *explained = explained.fma(z, z);
                    }
                }
            }
            for i in 0..B {
                t[i].store(self.t.as_mut_ptr().add(first + i * V::W));
                explained[i].store(self.explained.as_mut_ptr().add(first + i * V::W));
            }
        }
    }
}
