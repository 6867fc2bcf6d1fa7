//! Lends memory that was used before: a step needs the same few arrays thousands of times, and
//! the system hands out fresh pages far more slowly than a kernel fills them.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use ndarray::{ArrayView2, ArrayViewMut2};

/// Arrays that a thread keeps for the next use.
const KEPT: usize = 32;
/// A line of the cache, in bytes and in numbers: registers that lie across two load slowly.
const LINE: usize = 64;
const IN_LINE: usize = LINE / size_of::<f64>();

thread_local! {
    static FREE: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// An array of numbers that begins with a line of the cache, and goes back to its thread's store
/// when it is dropped.
#[derive(Debug, Default)]
pub struct Buffer {
    /// As long as they ever were: to grow again, they would have to be cleared.
    values: Vec<f64>,
    /// Where in `values` the array begins and ends.
    from: usize,
    to: usize,
}

impl Buffer {
    pub fn zeros(len: usize) -> Self {
        let mut buffer = Self::stale(len);
        buffer.fill(0.0);
        buffer
    }

    /// Numbers of an earlier use, for arrays that are written before they are read.
    pub fn stale(len: usize) -> Self {
        let room = len + IN_LINE - 1;
        let mut values = FREE.with_borrow_mut(|free| smallest_that_fits(free, room));
        values.reserve_exact(room.saturating_sub(values.len()));
        let from = values.as_ptr().align_offset(LINE).min(room - len);
        let to = from + len;
        values.resize(to.max(values.len()), 0.0);
        Buffer { values, from, to }
    }

    /// The numbers as rows of `width`.
    pub(crate) fn rows(&self, width: usize) -> ArrayView2<'_, f64> {
        let shape = (self.len().checked_div(width).unwrap_or(0), width);
        ArrayView2::from_shape(shape, &self[..shape.0 * width])
            .unwrap_or_else(|_| unreachable!("rows times width numbers were taken"))
    }

    pub(crate) fn rows_mut(&mut self, width: usize) -> ArrayViewMut2<'_, f64> {
        let shape = (self.len().checked_div(width).unwrap_or(0), width);
        ArrayViewMut2::from_shape(shape, &mut self[..shape.0 * width])
            .unwrap_or_else(|_| unreachable!("rows times width numbers were taken"))
    }
}

fn smallest_that_fits(free: &mut Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    let fits = free.iter().enumerate().filter(|(_, x)| x.capacity() >= len);
    let best = fits.min_by_key(|(_, x)| x.capacity()).map(|(index, _)| index);
    best.map_or_else(Vec::new, |index| free.swap_remove(index))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.values.capacity() == 0 {
            return;
        }
        let values = std::mem::take(&mut self.values);
        // A thread that is ending has no store any more.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT {
                free.push(values);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.values[self.from..self.to]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values[self.from..self.to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_clean() {
        let mut first = Buffer::zeros(100);
        first.fill(7.0);
        let place = first.as_ptr();
        drop(first);
        let second = Buffer::zeros(60);
        assert_eq!(second.as_ptr(), place);
        assert_eq!(place.align_offset(LINE), 0);
        assert!(second.iter().all(|x| *x == 0.0) && second.len() == 60);
        assert_eq!(second.rows(20).dim(), (3, 20));
    }
}
