//! Abstracts the vector registers: one f64 per lane, one sample per lane.
//!
//! The kernels are written once over [`Lanes`]; a `#[target_feature]` shell per instruction
//! set inlines them. All unsafe code of the library is in this folder.

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
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn div(self, o: Self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// `self + a * b`
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// `self - a * b`
    unsafe fn fnma(self, a: Self, b: Self) -> Self;
}

/// Four lanes in plain Rust, for every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable([f64; 4]);

macro_rules! each {
    ($f:expr) => {
        Portable(std::array::from_fn($f))
    };
}

impl Lanes for Portable {
    const W: usize = 4;
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
        Portable([x; 4])
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        each!(|i| self.0[i] + o.0[i])
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

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// Four lanes in one 256-bit register, with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256d);

    // SAFETY of every block: `Kernel::best` and `Kernel::forced` hand out this
    // implementation only where AVX2 and FMA were detected; pointers as the trait says.
    impl Lanes for Avx2 {
        const W: usize = 4;
        #[inline(always)]
        unsafe fn load(p: *const f64) -> Self {
            Avx2(unsafe { _mm256_loadu_pd(p) })
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f64) {
            unsafe { _mm256_storeu_pd(p, self.0) }
        }
        #[inline(always)]
        unsafe fn splat(x: f64) -> Self {
            Avx2(unsafe { _mm256_set1_pd(x) })
        }
        #[inline(always)]
        unsafe fn add(self, o: Self) -> Self {
            Avx2(unsafe { _mm256_add_pd(self.0, o.0) })
        }
        #[inline(always)]
        unsafe fn mul(self, o: Self) -> Self {
            Avx2(unsafe { _mm256_mul_pd(self.0, o.0) })
        }
        #[inline(always)]
        unsafe fn div(self, o: Self) -> Self {
            Avx2(unsafe { _mm256_div_pd(self.0, o.0) })
        }
        #[inline(always)]
        unsafe fn sqrt(self) -> Self {
            Avx2(unsafe { _mm256_sqrt_pd(self.0) })
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            Avx2(unsafe { _mm256_fmadd_pd(a.0, b.0, self.0) })
        }
        #[inline(always)]
        unsafe fn fnma(self, a: Self, b: Self) -> Self {
            Avx2(unsafe { _mm256_fnmadd_pd(a.0, b.0, self.0) })
        }
    }
}
