//! Checks that every kernel says the same: all instruction sets, widths of tile, and forms, over
//! shapes that fill neither tiles nor lanes. tests/oracle.rs checks one of them by the equations.

use proptest::prelude::*;

use super::kernel::with_lanes;
use super::*;
use crate::support::random::{Purpose, stream};
use rand::RngExt;

struct Case {
    d: Array2<f64>,
    y: Array2<f64>,
    v: Array2<f64>,
    gram: Array2<f64>,
    products: OnceLock<Vec<f64>>,
    slopes: bool,
}

impl Case {
    /// The share `alive` of the variances is above nought.
    fn new([n, m, rows]: [usize; 3], alive: f64, seed: u64) -> Self {
        let mut rng = stream(seed, Purpose::Noise);
        let mut draw = |shape| Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
        let (d, y, dice) = (draw((n, m)), draw((rows, n)), draw((rows, m)));
        let v = dice.mapv(|x| if x + 0.5 < alive { 0.1 + x.abs() } else { 0.0 });
        let gram = super::padded_gram(d.view());
        Case { gram, products: OnceLock::new(), d, y, v, slopes: true }
    }

    fn task(&self) -> Task<'_> {
        let mut task = Task {
            d: self.d.view(),
            s: 0.07,
            gram: self.gram.view(),
            products: &self.products,
            y: self.y.view(),
            v: self.v.view(),
            want: Want { cov: true, slopes: self.slopes },
            projection: Buffer::default(),
        };
        task.project();
        task
    }

    fn answer(&self, run: impl Fn(&Task, &[usize], &mut Answer)) -> [Vec<f64>; 5] {
        let (rows, m) = self.v.dim();
        let mut out = Answer {
            t: Buffer::zeros(rows * m),
            b: Buffer::zeros(rows * m),
            quad: Buffer::zeros(rows),
            log_det: Buffer::zeros(rows),
            cov: Buffer::zeros(m * m),
        };
        // All that is read must have been written: what the kernels are lent is spoilt, too.
        let mut lent: Vec<Buffer> = (0..16).map(|_| Buffer::stale(1 << 16)).collect();
        lent.iter_mut().for_each(|lent| lent.fill(f64::NAN));
        drop(lent);
        for values in [&mut out.t, &mut out.b, &mut out.quad, &mut out.log_det] {
            values.fill(f64::NAN);
        }
        let all: Vec<usize> = (0..rows).collect();
        run(&self.task(), &all, &mut out);
        [out.t, out.b, out.quad, out.log_det, out.cov].map(|x| x.to_vec())
    }

    fn check(&self) {
        let expected = self.answer(blocked::run);
        let same = |found: [Vec<f64>; 5], what: &str| {
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                for (found, expected) in found.iter().zip(expected) {
                    let apart = (found - expected).abs() / (1.0 + expected.abs());
                    assert!(apart < 1e-10, "{what}, part {index}: {found} is not {expected}");
                }
            }
        };
        // The M-form says nothing of atoms that are not in use.
        let full = self.v.iter().all(|v| *v > 0.0);
        let forms: &[Form] =
            if full { &[Form::N, Form::Gram, Form::M] } else { &[Form::N, Form::Gram] };
        for &form in forms {
            for kernel in Kernel::available() {
                let found = self.answer(|task, rows, out| run(kernel, form, task, rows, out));
                same(found, &format!("{kernel:?} {form:?}"));
            }
            // SAFETY: plain Rust, for every processor. These are the lanes and tiles of AVX-512.
            let wide = self.answer(|task, rows, out| unsafe {
                with_lanes::<lanes::Portable<8>, 5>(form, task, rows, out)
            });
            same(wide, &format!("eight lanes {form:?}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn kernels_agree(
        n in 1usize..24, m in 1usize..30, rows in 1usize..40,
        alive in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0], seed in 0u64..1000,
    ) {
        let mut case = Case::new([n, m, rows], alive, seed);
        case.check();
        // Now as if there were too many.
        case.products = OnceLock::from(Vec::new());
        case.check();
    }
}

/// Where v is nought, the M-form leaves t and b at nought; all else is as in the other forms.
#[test]
fn the_m_form_leaves_out_what_is_not_in_use() {
    let case = Case::new([7, 11, 6], 0.5, 3);
    let expected = case.answer(blocked::run);
    for kernel in Kernel::available() {
        let found = case.answer(|task, rows, out| run(kernel, Form::M, task, rows, out));
        for (part, (found, expected)) in found.iter().zip(&expected).enumerate() {
            for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
                let used = part > 1 || case.v.as_slice().is_some_and(|v| v[place] > 0.0);
                let expected = if used { *expected } else { 0.0 };
                assert!((found - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{kernel:?}");
            }
        }
    }
}

/// Without slopes, the N-form may say anything of atoms that are not in use, if it is a number.
#[test]
fn the_n_form_is_right_where_atoms_are_in_use() {
    for (shape, alive) in [([7, 11, 6], 0.5), ([20, 50, 37], 0.9), ([3, 7, 1], 0.0)] {
        let mut case = Case::new(shape, alive, 5);
        // Hardly in use, and near what f64 can hold.
        case.v[[0, 0]] = 1e-200;
        let expected = case.answer(blocked::run);
        case.slopes = false;
        let same = |found: [Vec<f64>; 5]| {
            for (part, (found, expected)) in found.iter().zip(&expected).enumerate() {
                for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
                    let used = part > 1 || case.v.as_slice().is_some_and(|v| v[place] > 1e-20);
                    let apart = (found - expected).abs() / (1.0 + expected.abs());
                    assert!(if used { apart < 1e-10 } else { found.is_finite() }, "{shape:?}");
                }
            }
        };
        for kernel in Kernel::available() {
            same(case.answer(|task, rows, out| run(kernel, Form::N, task, rows, out)));
        }
        // SAFETY: plain Rust, for every processor. These are the lanes and tiles of AVX-512.
        same(case.answer(|task, rows, out| unsafe {
            with_lanes::<lanes::Portable<8>, 5>(Form::N, task, rows, out)
        }));
    }
}

/// Samples with the same variances, of which some may be nought, share one S.
#[test]
fn samples_may_share_their_variances() {
    assert!(!Case::new([7, 11, 6], 0.5, 4).task().shares_variances());
    for (shape, alive) in
        [([7, 11, 6], 0.5), ([20, 50, 30], 1.0), ([1, 1, 2], 1.0), ([3, 3, 2], 0.0)]
    {
        let mut case = Case::new(shape, alive, 4);
        let first = case.v.row(0).to_owned();
        case.v.rows_mut().into_iter().for_each(|mut v| v.assign(&first));
        assert!(case.task().shares_variances());
        let found = case.answer(|task, _, out| shared::run(task, out));
        let expected = case.answer(blocked::run);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{shape:?}");
        }
    }
}

#[test]
fn kernels_agree_on_larger_shapes() {
    Case::new([61, 150, 9], 1.0, 1).check();
    Case::new([203, 40, 5], 0.5, 2).check();
}
