//! Forms S = s I + D V D^T of two groups at once from the products d_p d_q of all pairs of rows:
//! one plain product of matrices, right while those of few features stay in the cache.

use ndarray::ArrayView2;

use super::Task;
use super::lanes::Lanes;
use super::panel::Shape;
use crate::support::buffer::Buffer;

/// Groups, and pairs, that are summed together: 2 x 6 sums, two variances and a product fit 16
/// registers.
const GROUPS: usize = 2;
const TOGETHER: usize = 6;
/// Products that stay in the second-level cache beside the rest.
const BYTES: usize = 1 << 18;

/// d_p d_q of every pair of rows and every atom, filled up with noughts: [some pairs][atom][pair].
/// Nothing if they are too many.
pub(super) fn products(d: ArrayView2<f64>) -> Vec<f64> {
    let (n, m) = d.dim();
    let count = (n * (n + 1) / 2).next_multiple_of(TOGETHER);
    if 8 * count * m > BYTES {
        return Vec::new();
    }
    let mut products = vec![0.0; count * m];
    for (pair, (p, q)) in pairs(n).enumerate() {
        let some = &mut products[pair / TOGETHER * m * TOGETHER + pair % TOGETHER..];
        let of_atoms = d.row(p).into_iter().zip(d.row(q));
        of_atoms.zip(some.iter_mut().step_by(TOGETHER)).for_each(|((p, q), to)| *to = p * q);
    }
    products
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(|q| (0..=q).map(move |p| (p, q)))
}

pub(super) struct Pairs<'a> {
    products: &'a [f64],
    /// Where each pair of rows stands in a square, and what its sum begins with.
    places: Vec<(usize, f64)>,
    /// S of every group, laid out like the square part of a panel.
    squares: [Buffer; GROUPS],
}

impl<'a> Pairs<'a> {
    /// None if the products are too many.
    pub fn new<V: Lanes, const T: usize>(task: &'a Task, shape: Shape) -> Option<Self> {
        let n = task.n();
        let place = |(p, q)| (shape.at::<V, T>(p, q), if p == q { task.s } else { 0.0 });
        let squares = std::array::from_fn(|_| {
            let mut square = Buffer::zeros(shape.square::<T>() * shape.stride::<V, T>());
            // Rows beyond the last feature are those of a unit matrix.
            for p in n..shape.rows {
                let here = shape.at::<V, T>(p, p);
                square[here..here + V::W].fill(1.0);
            }
            square
        });
        let places = pairs(n).map(place).collect();
        let products = task.products();
        (!products.is_empty()).then_some(Pairs { products, places, squares })
    }

    /// S of the group at `place`.
    pub fn square(&self, place: usize) -> &[f64] {
        &self.squares[place % GROUPS]
    }

    /// Forms S of the group at `place` and the next one, given the variances of all groups:
    /// [group][atom][lane]. At odd places that has been done.
    ///
    /// # Safety
    /// The processor has the instruction set of `V`.
    #[inline(always)]
    pub unsafe fn form<V: Lanes>(&mut self, v: &[f64], m: usize, place: usize) {
        if !place.is_multiple_of(GROUPS) {
            return;
        }
        let v = &v[place * m * V::W..(place + GROUPS) * m * V::W];
        for (places, products) in
            self.places.chunks(TOGETHER).zip(self.products.chunks_exact(m * TOGETHER))
        {
            // SAFETY: the slices above have m products of every pair and m variances of every
            // group; places are those of registers within a square.
            unsafe {
                let mut acc = [[V::splat(0.0); GROUPS]; TOGETHER];
                for k in 0..m {
                    let mut left = [V::splat(0.0); GROUPS];
                    for group in 0..GROUPS {
                        left[group] = V::load(v.as_ptr().add((group * m + k) * V::W));
                    }
                    for i in 0..TOGETHER {
                        let product = V::splat(*products.as_ptr().add(k * TOGETHER + i));
                        for group in 0..GROUPS {
                            acc[i][group] = acc[i][group].fma(left[group], product);
                        }
                    }
                }
                for (sums, &(here, first)) in acc.iter().zip(places) {
                    for (sum, square) in sums.iter().zip(&mut self.squares) {
                        let sum = sum.fma(V::splat(first), V::splat(1.0));
                        sum.store(square.as_mut_ptr().add(here));
                    }
                }
            }
        }
    }
}
