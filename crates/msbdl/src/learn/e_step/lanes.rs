//! Abstracts the vector registers: one f64 per lane, one sample per lane.
//!
//! The kernels are written once over [`Lanes`]; a `#[target_feature]` shell per instruction
//! set inlines them. All unsafe code of the library is in this folder.

use std::hint::black_box;
use std::time::Instant;

/// A register of `W` samples' values of one quantity.
pub(super) trait Lanes: Copy {
    /// Samples per register.
    const W: usize;

    /// # Safety
    /// `p` is readable for `W` values. This and every other method: the processor has the
    /// instruction set of the implementor.
    unsafe fn load(p: *const f64) -> Self;
    /// # Safety
    /// `p` is writable for `W` values.
    unsafe fn store(self, p: *mut f64);
    unsafe fn splat(x: f64) -> Self;
    /// Each lane's value by its number.
    unsafe fn from_lanes(value: impl Fn(usize) -> f64) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn div(self, o: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// `self + a * b`
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// `self - a * b`
    unsafe fn fnma(self, a: Self, b: Self) -> Self;
}

/// Lanes in plain Rust, for every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable<const W: usize>([f64; W]);

macro_rules! each {
    ($f:expr) => {
        Portable(std::array::from_fn($f))
    };
}

impl<const W: usize> Lanes for Portable<W> {
    const W: usize = W;
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the caller vouches for W readable values.
        each!(|i| unsafe { *p.add(i) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        for (i, x) in self.0.into_iter().enumerate() {
            // SAFETY: the caller vouches for W writable values.
            unsafe { *p.add(i) = x };
        }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self {
        Portable([x; W])
    }
    #[inline(always)]
    unsafe fn from_lanes(value: impl Fn(usize) -> f64) -> Self {
        each!(&value)
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        each!(|i| self.0[i] * o.0[i])
    }
    #[inline(always)]
    unsafe fn div(self, o: Self) -> Self {
        each!(|i| self.0[i] / o.0[i])
    }
    #[inline(always)]
    unsafe fn sqrt(self) -> Self {
        each!(|i| self.0[i].sqrt())
    }
    // Not f64::mul_add: without the instruction it is a slow library call.
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        each!(|i| self.0[i] + a.0[i] * b.0[i])
    }
    #[inline(always)]
    unsafe fn fnma(self, a: Self, b: Self) -> Self {
        each!(|i| self.0[i] - a.0[i] * b.0[i])
    }
}

/// Multiply-adds per second, as a pair of operations, of a loop that does nothing else.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn peak<V: Lanes>() -> f64 {
    /// Enough independent sums to hide the latency, few enough to stay in registers.
    const SUMS: usize = 12;
    const ROUNDS: usize = 100_000;
    // SAFETY: arithmetic only.
    unsafe {
        let (a, b) = (V::splat(black_box(0.999)), V::splat(black_box(1e-3)));
        let mut sums = [V::splat(1.0); SUMS];
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for sum in &mut sums {
                *sum = b.fma(*sum, a);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let mut all = [0.0; SUMS * 8];
        sums.iter().enumerate().for_each(|(i, x)| x.store(all[i * V::W..].as_mut_ptr()));
        black_box(all);
        (2 * SUMS * ROUNDS * V::W) as f64 / seconds
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// Implements `Lanes` by one intrinsic per method.
    macro_rules! lanes {
        ($name:ident, $register:ty, $w:literal, $load:ident, $store:ident, $splat:ident,
         $set:ident($($lane:literal),*), $mul:ident, $div:ident, $sqrt:ident, $fma:ident,
         $fnma:ident) => {
            #[derive(Clone, Copy)]
            pub(in super::super) struct $name($register);

            // SAFETY of every block: `Kernel` hands out this implementation only where its
            // instruction set was detected; pointers as the trait says.
            impl Lanes for $name {
                const W: usize = $w;
                #[inline(always)]
                unsafe fn load(p: *const f64) -> Self {
                    $name(unsafe { $load(p) })
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut f64) {
                    unsafe { $store(p, self.0) }
                }
                #[inline(always)]
                unsafe fn splat(x: f64) -> Self {
                    $name(unsafe { $splat(x) })
                }
                #[inline(always)]
                unsafe fn from_lanes(value: impl Fn(usize) -> f64) -> Self {
                    $name(unsafe { $set($(value($lane)),*) })
                }
                #[inline(always)]
                unsafe fn mul(self, o: Self) -> Self {
                    $name(unsafe { $mul(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn div(self, o: Self) -> Self {
                    $name(unsafe { $div(self.0, o.0) })
                }
                #[inline(always)]
                unsafe fn sqrt(self) -> Self {
                    $name(unsafe { $sqrt(self.0) })
                }
                #[inline(always)]
                unsafe fn fma(self, a: Self, b: Self) -> Self {
                    $name(unsafe { $fma(a.0, b.0, self.0) })
                }
                #[inline(always)]
                unsafe fn fnma(self, a: Self, b: Self) -> Self {
                    $name(unsafe { $fnma(a.0, b.0, self.0) })
                }
            }
        };
    }

    lanes!(
        Avx2,
        __m256d,
        4,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_setr_pd(0, 1, 2, 3),
        _mm256_mul_pd,
        _mm256_div_pd,
        _mm256_sqrt_pd,
        _mm256_fmadd_pd,
        _mm256_fnmadd_pd
    );
    lanes!(
        Avx512,
        __m512d,
        8,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7),
        _mm512_mul_pd,
        _mm512_div_pd,
        _mm512_sqrt_pd,
        _mm512_fmadd_pd,
        _mm512_fnmadd_pd
    );
}
