//! Times the E-step kernels beside the processor's FMA peak: `kernels [REPEATS]`, or one dense E-step
//! of L samples on one thread: `kernels REPEATS N M L`.
//!
//! Prints one line of JSON per measurement; bench/run.py makes the table of them.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use msbdl::Posterior;
use msbdl::learn::e_step::{Kernel, Prepared, Want, e_step};
use ndarray::{Array2, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    let words: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let repeats = words.first().copied().unwrap_or(7);
    if let [_, n, m, l] = words[..] {
        return whole(repeats, [n, m, l]);
    }
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

    /// Some of the samples, as many at a time as in a fit.
    fn learn_from(&self, samples: Range<usize>) {
        for from in samples.clone().step_by(CHUNK) {
            let some = s![from..(from + CHUNK).min(samples.end), ..];
            black_box(e_step(&self.dictionary, self.y.slice(some), self.v.slice(some), LEARN));
        }
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
const CHUNK: usize = 256;

/// Multiply-adds of a dense E-step count as two operations.
fn operations([n, m, l]: [usize; 3]) -> f64 {
    let [n, m, l] = [n, m, l].map(|x| x as f64);
    let form_and_solve = n * (n + 1.0) / 2.0 * (2.0 * m + 1.0) + n * n * n / 6.0;
    let sum = n * m * (m + 1.0) / 2.0;
    2.0 * (form_and_solve + sum) * l
}

/// One E-step, and what it would take at the peak.
fn whole(repeats: usize, shape: [usize; 3]) {
    let kernel = Kernel::best();
    let case = Case::new(kernel, shape, shape[1]);
    let (mut seconds, mut peak) = (f64::INFINITY, 0.0);
    for _ in 0..repeats {
        peak = kernel.peak().map_or(peak, |now| now.max(peak));
        seconds = seconds.min(fastest(1, || case.learn_from(0..shape[2])));
    }
    let at_peak = operations(shape) / peak;
    println!(r#"{{"what":"e-step","ms":{:.4},"at_peak":{:.4}}}"#, 1e3 * seconds, 1e3 * at_peak);
}

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
        let speed = operations([n, m, l]) / seconds;
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

/// What does some parts of a whole.
type Work<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// What a second thread brings to the E-step of 20,000 samples, and to a loop of nothing but FMA:
/// half of the work on each of two.
fn threads(repeats: usize) {
    let kernel = Kernel::best();
    let case = Case::new(kernel, [20, 50, 20_000], 50);
    let loops = |count: Range<usize>| {
        count.for_each(|_| {
            black_box(kernel.peak());
        });
    };
    let works: [(usize, Work); 2] = [(100, &loops), (20_000, &|samples| case.learn_from(samples))];
    let (mut one, mut two) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
    for _ in 0..2 * repeats {
        for (k, (size, work)) in works.iter().enumerate() {
            one[k] = one[k].min(fastest(1, || work(0..*size)));
            two[k] = two[k].min(fastest(1, || {
                std::thread::scope(|scope| {
                    scope.spawn(|| work(0..size / 2));
                    work(size / 2..*size);
                })
            }));
        }
    }
    let [fma, kernel] = [0, 1].map(|k| one[k] / two[k]);
    println!(r#"{{"what":"threads","fma":{fma:.2},"kernel":{kernel:.2}}}"#);
}
