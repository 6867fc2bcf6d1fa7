//! Times the E-step kernels beside the processor's FMA peak: `kernels [REPEATS]`.
//!
//! Prints one line of JSON per measurement; bench/run.py makes the table of them.

use std::hint::black_box;
use std::time::Instant;

use msbdl::Posterior;
use msbdl::learn::e_step::{Kernel, Prepared, Want, e_step};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    let repeats = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(7);
    for kernel in Kernel::available() {
        dense(kernel, repeats);
    }
    sparse(Kernel::best(), repeats);
    approximate(repeats);
    threads(repeats);
}

/// The fastest of `repeats` runs, in seconds.
fn fastest(repeats: usize, mut work: impl FnMut()) -> f64 {
    let once = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..repeats).map(|_| once(&mut work)).fold(f64::INFINITY, f64::min)
}

struct Case {
    dictionary: Prepared,
    y: Array2<f64>,
    v: Array2<f64>,
}

impl Case {
    /// `active` of `m` variances alive in each of `l` samples.
    fn new(kernel: Kernel, shape: [usize; 3], active: usize) -> Self {
        Self::with(kernel, shape, active, Posterior::Exact)
    }

    fn with(kernel: Kernel, [n, m, l]: [usize; 3], active: usize, posterior: Posterior) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut draw = |shape| Array2::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
        let d = draw((n, m));
        let y = draw((l, n));
        let v = Array2::from_shape_fn((l, m), |(row, atom)| {
            let on = (atom * 7 + row * 3) % m < active;
            if on { 0.2 + 0.1 * ((atom + row) % 3) as f64 } else { 0.0 }
        });
        let dictionary = Prepared::new(d.view(), 0.05, posterior).with_kernel(kernel);
        Case { dictionary, y, v }
    }

    fn seconds(&self, repeats: usize, want: Want) -> f64 {
        fastest(repeats, || {
            black_box(e_step(&self.dictionary, self.y.view(), self.v.view(), want));
        })
    }
}

/// N, M and samples.
const SHAPES: [[usize; 3]; 5] =
    [[20, 50, 256], [49, 196, 256], [100, 400, 64], [200, 400, 32], [400, 800, 8]];

const LEARN: Want = Want { cov: true, slopes: false };

fn dense(kernel: Kernel, repeats: usize) {
    let cases = SHAPES.map(|shape| Case::new(kernel, shape, shape[1]));
    let (mut seconds, mut peak) = ([f64::INFINITY; SHAPES.len()], 0.0);
    // Peak and shapes in turn, so that all see the machine at its best.
    for _ in 0..repeats {
        for (case, seconds) in cases.iter().zip(&mut seconds) {
            peak = kernel.peak().map_or(peak, |now| now.max(peak));
            *seconds = seconds.min(case.seconds(3, LEARN));
        }
    }
    for ([n, m, l], seconds) in SHAPES.into_iter().zip(seconds) {
        let (n, m) = (n as f64, m as f64);
        let form_and_solve = n * (n + 1.0) / 2.0 * (2.0 * m + 1.0) + n * n * n / 6.0;
        let sum = n * m * (m + 1.0) / 2.0;
        let speed = 2.0 * (form_and_solve + sum) * l as f64 / seconds;
        println!(
            r#"{{"what":"dense","kernel":"{kernel:?}","n":{n},"m":{m},"l":{l},"ms":{:.3},"gflops":{:.1},"peak":{:.1},"share":{:.3}}}"#,
            1e3 * seconds,
            speed / 1e9,
            peak / 1e9,
            speed / peak
        );
    }
}

fn sparse(kernel: Kernel, repeats: usize) {
    let shape = [49, 196, 1024];
    let dense = Case::new(kernel, shape, shape[1]).seconds(repeats, LEARN);
    for active in [0, 5, 10, 20, 30, 49] {
        let seconds = Case::new(kernel, shape, active).seconds(3 * repeats, LEARN);
        println!(
            r#"{{"what":"sparse","kernel":"{kernel:?}","k":{active},"us":{:.3},"ratio":{:.1}}}"#,
            1e6 * seconds / shape[2] as f64,
            dense / seconds
        );
    }
}

/// The approximate posterior against the exact one, all atoms in use and ten of them.
fn approximate(repeats: usize) {
    let kernel = Kernel::best();
    for [n, m, l] in SHAPES {
        for active in [m, 10] {
            let of = |posterior| {
                Case::with(kernel, [n, m, l], active, posterior).seconds(repeats, LEARN)
            };
            let ratio = of(Posterior::Exact) / of(Posterior::Approximate);
            println!(r#"{{"what":"approximate","n":{n},"m":{m},"k":{active},"ratio":{ratio:.2}}}"#);
        }
    }
}

/// What a second thread brings to the kernel, and to a loop of nothing but FMA.
fn threads(repeats: usize) {
    let kernel = Kernel::best();
    let case = Case::new(kernel, [20, 50, 2048], 50);
    let works: [&(dyn Fn() + Sync); 2] = [
        &|| {
            black_box(kernel.peak());
        },
        &|| {
            black_box(e_step(&case.dictionary, case.y.view(), case.v.view(), LEARN));
        },
    ];
    let (mut one, mut two) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    for _ in 0..5 * repeats {
        for (k, work) in works.iter().enumerate() {
            one[k] = one[k].min(fastest(1, work));
            two[k] = two[k].min(fastest(1, || {
                std::thread::scope(|scope| {
                    scope.spawn(work);
                    work();
                })
            }));
        }
    }
    let [fma, kernel] = [0, 1].map(|k| 2.0 * one[k] / two[k]);
    println!(r#"{{"what":"threads","fma":{fma:.2},"kernel":{kernel:.2}}}"#);
}
