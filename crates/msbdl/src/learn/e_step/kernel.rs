//! Chooses an instruction set, and hands samples to the kernels compiled for it.

use super::{Answer, Task, approximate, gram_form, lanes, m_form, n_form};

/// An instruction set that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The fastest that this processor has, or the one that `MSBDL_KERNEL` names (`portable`,
    /// `avx2`, `avx512`) if the processor has it.
    pub fn best() -> Self {
        let all = Self::available();
        let forced = std::env::var("MSBDL_KERNEL").unwrap_or_default();
        let named = |kernel: &&Self| format!("{kernel:?}").eq_ignore_ascii_case(&forced);
        *all.iter().find(named).unwrap_or(&all[all.len() - 1])
    }

    /// All that this processor has, slowest first.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Kernel::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Kernel::Avx2);
            }
            if is_x86_feature_detected!("avx512f") {
                all.push(Kernel::Avx512);
            }
        }
        all
    }

    /// Up to here, samples side by side are faster than one after the other by a library that has
    /// vector instructions of its own; beyond, they would need too much memory.
    pub(super) fn most_features(self) -> usize {
        match self {
            Kernel::Portable => 199,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 | Kernel::Avx512 => 1000,
        }
    }

    /// Floating-point operations per second of one core that does nothing but multiply and add
    /// with this instruction set: what the speed of a kernel is to be measured against. None if
    /// the processor lacks it.
    pub fn peak(self) -> Option<f64> {
        if !Self::available().contains(&self) {
            return None;
        }
        // SAFETY: the processor has the instruction set.
        let peak = unsafe {
            match self {
                Kernel::Portable => lanes::peak::<lanes::Portable<2>>(),
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx2 => peak_avx2(),
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx512 => peak_avx512(),
            }
        };
        Some(peak)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn peak_avx2() -> f64 {
    // SAFETY: the caller has checked for AVX2 and FMA.
    unsafe { lanes::peak::<lanes::Avx2>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn peak_avx512() -> f64 {
    // SAFETY: the caller has checked for AVX-512.
    unsafe { lanes::peak::<lanes::Avx512>() }
}

/// A way to the posterior that is written over lanes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    N,
    M,
    Gram,
    Approximate,
}

/// Answers `task` for the samples in `rows` with a kernel.
pub(super) fn run(kernel: Kernel, form: Form, task: &Task, rows: &[usize], out: &mut Answer) {
    if rows.is_empty() {
        return;
    }
    // SAFETY: `Kernel` values come from `available`, which asked the processor.
    unsafe {
        match kernel {
            // Two lanes are what the registers of every processor hold.
            Kernel::Portable => with_lanes::<lanes::Portable<2>, 3>(form, task, rows, out),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => with_avx2(form, task, rows, out),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => with_avx512(form, task, rows, out),
        }
    }
}

/// Three columns a tile: 9 sums, 3 left and 1 right operand fit 16 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn with_avx2(form: Form, task: &Task, rows: &[usize], out: &mut Answer) {
    // SAFETY: the caller has checked for AVX2 and FMA.
    unsafe { with_lanes::<lanes::Avx2, 3>(form, task, rows, out) }
}

/// Five columns a tile: 25 sums, 5 left and 1 right operand fit 32 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn with_avx512(form: Form, task: &Task, rows: &[usize], out: &mut Answer) {
    // SAFETY: the caller has checked for AVX-512.
    unsafe { with_lanes::<lanes::Avx512, 5>(form, task, rows, out) }
}

/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn with_lanes<V: lanes::Lanes, const T: usize>(
    form: Form,
    task: &Task,
    rows: &[usize],
    out: &mut Answer,
) {
    // SAFETY: as the caller vouches.
    unsafe {
        match form {
            Form::N => n_form::run::<V, T>(task, rows, out),
            Form::M => m_form::run::<V, T>(task, rows, out),
            Form::Gram => gram_form::run::<V, T>(task, rows, out),
            Form::Approximate => approximate::run::<V>(task, rows, out),
        }
    }
}
