//! Times EM iterations with labels beside the same without: `label_cost [ITERATIONS [REPEATS]]`.
//!
//! The labels are ten classes, a fifth of the samples validating, as by default; what the looks at
//! those cost, every tenth iteration, is in the mean. Shown are milliseconds of processor time
//! where the system tells (Linux), the least of the repeats. "work" is the ratio of
//! multiplications that the E-steps need, each in the cheaper of the two exact forms.

use std::error::Error;
use std::time::Instant;

use msbdl::synth::Recipe;
use msbdl::{Config, Data, Facts, Labels, Next, TaskConfig, fit, fit_task};
use ndarray::s;

/// Features of each modality, atoms, samples.
const SHAPES: [(&[usize], usize, usize); 5] = [
    (&[20, 20], 50, 1000),
    (&[20, 10], 40, 2000),
    (&[40, 40], 50, 1000),
    (&[60, 60], 100, 500),
    (&[100, 100], 50, 1000),
];
const CLASSES: usize = 10;
const VALIDATION: f64 = 0.2;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let iterations = words.first().map_or(Ok(60), |word| word.parse())?;
    let repeats: usize = words.get(1).map_or(Ok(3), |word| word.parse())?;
    println!("features  atoms samples | without    with (ms) | ratio  work");
    for (features, atoms, samples) in SHAPES {
        let recipe = Recipe {
            n_samples: samples,
            n_features: features.iter().copied().max().unwrap_or(1),
            n_atoms: atoms,
            ..Recipe::paper(&vec![20.0; features.len()], 0)
        };
        let drawn = recipe.draw()?.data.into_iter().zip(features).enumerate();
        let views = drawn.map(|(j, (y, &n))| (format!("mod{j}"), y.slice(s![.., ..n]).to_owned()));
        let data = Data::new(views.collect(), true)?;
        let classes: Vec<_> = (0..samples).map(|i| Some(i * i % 97 % CLASSES)).collect();
        let labels = Labels::classes(&classes)?;
        let task = TaskConfig::default();
        let config = Config { threads: 1, max_iter: Some(iterations), ..Config::new(atoms) };
        let (mut without, mut with) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..repeats {
            let mut watch = Watch::default();
            fit(&data, &config, &mut |facts: &Facts| watch.see(facts))?;
            without = without.min(watch.mean());
            let mut watch = Watch::default();
            fit_task(&data, &labels, &task, &config, &mut |facts: &Facts| watch.see(facts))?;
            with = with.min(watch.mean());
        }
        println!(
            "{:9} {atoms:5} {samples:7} | {:7.2} {:7.2}      | {:5.2} {:5.2}",
            features.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
            1e3 * without,
            1e3 * with,
            with / without,
            work(features, atoms, CLASSES) / work(features, atoms, 0),
        );
    }
    Ok(())
}

/// Seconds between the first and the last iteration.
#[derive(Default)]
struct Watch {
    first: Option<f64>,
    last: f64,
    count: usize,
}

impl Watch {
    fn see(&mut self, _: &Facts) -> Next {
        self.last = now();
        match self.first {
            None => self.first = Some(self.last),
            Some(_) => self.count += 1,
        }
        Next::Continue
    }

    fn mean(&self) -> f64 {
        (self.last - self.first.unwrap_or(self.last)) / self.count.max(1) as f64
    }
}

/// Processor time of this thread, which does all the work; the clock where Linux does not tell.
fn now() -> f64 {
    thread_local!(static START: Instant = Instant::now());
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = used.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    used.map_or_else(|| START.with(|start| start.elapsed().as_secs_f64()), |ns| ns * 1e-9)
}

/// Multiplications per sample with `c` rows of labels, where those are shown.
fn work(features: &[usize], m: usize, c: usize) -> f64 {
    let m = m as f64;
    let form = |n: f64| {
        let n_form = n * n * m + n * n * n / 6.0 + n * m * m / 2.0;
        n_form.min(m * m * m / 2.0)
    };
    let shown = |n: usize| (1.0 - VALIDATION) * form((n + c) as f64) + VALIDATION * form(n as f64);
    features.iter().map(|&n| shown(n)).sum()
}
