//! Times the iterations of whole fits with labels beside those without: `label_cost [REPEATS]`.
//!
//! The labels are ten classes, told by the largest coefficient; a fifth of the samples validates, as
//! by default, and what the looks at those cost is in the mean. Shown are milliseconds of processor
//! time per iteration where the system tells (Linux), the least of the repeats, and how many
//! iterations there were. Labels that validation finds no more of end a fit early, and later rounds
//! are cheaper than the first ones, so the last column compares as many iterations of both.

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

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let repeats: usize = words.first().map_or(Ok(3), |word| word.parse())?;
    println!(
        "features  atoms samples | without    with (ms) | ratio | iterations | as many of both"
    );
    for (features, atoms, samples) in SHAPES {
        let recipe = Recipe {
            n_samples: samples,
            n_features: features.iter().copied().max().unwrap_or(1),
            n_atoms: atoms,
            ..Recipe::paper(&vec![20.0; features.len()], 0)
        };
        let truth = recipe.draw()?;
        let classes: Vec<Option<usize>> = truth.codes[0]
            .rows()
            .into_iter()
            .map(|x| (0..atoms).max_by(|&a, &b| x[a].abs().total_cmp(&x[b].abs())))
            .map(|largest| largest.map(|atom| atom % CLASSES))
            .collect();
        let drawn = truth.data.into_iter().zip(features).enumerate();
        let views = drawn.map(|(j, (y, &n))| (format!("mod{j}"), y.slice(s![.., ..n]).to_owned()));
        let data = Data::new(views.collect(), true)?;
        let labels = Labels::classes(&classes)?;
        let task = TaskConfig::default();
        let config = Config { threads: 1, ..Config::new(atoms) };
        let (mut without, mut with) = (Times::none(), Times::none());
        for _ in 0..repeats {
            let mut watch = Watch::default();
            fit(&data, &config, &mut |facts: &Facts| watch.see(facts))?;
            without.take(&watch);
            let mut watch = Watch::default();
            fit_task(&data, &labels, &task, &config, &mut |facts: &Facts| watch.see(facts))?;
            with.take(&watch);
        }
        let both = without.least.len().min(with.least.len());
        println!(
            "{:9} {atoms:5} {samples:7} | {:7.2} {:7.2}      | {:5.2} | {} {} | {:5.2}",
            features.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
            1e3 * without.mean(without.least.len()),
            1e3 * with.mean(with.least.len()),
            with.mean(with.least.len()) / without.mean(without.least.len()),
            without.least.len(),
            with.least.len(),
            with.mean(both) / without.mean(both),
        );
    }
    Ok(())
}

/// Processor time at the end of every iteration.
#[derive(Default)]
struct Watch(Vec<f64>);

impl Watch {
    fn see(&mut self, _: &Facts) -> Next {
        self.0.push(now());
        Next::Continue
    }
}

/// Seconds from the end of the first iteration to that of each other one: the least of the repeats.
struct Times {
    least: Vec<f64>,
}

impl Times {
    fn none() -> Self {
        Times { least: Vec::new() }
    }

    fn take(&mut self, watch: &Watch) {
        let all = watch.0.iter().map(|end| end - watch.0[0]).collect::<Vec<_>>();
        self.least.resize(all.len(), f64::INFINITY);
        self.least.iter_mut().zip(all).for_each(|(least, now)| *least = least.min(now));
    }

    /// Of an iteration among the first `count`.
    fn mean(&self, count: usize) -> f64 {
        self.least[count - 1] / (count - 1).max(1) as f64
    }
}

/// Processor time of this thread, which does all the work; the clock where Linux does not tell.
fn now() -> f64 {
    thread_local!(static START: Instant = Instant::now());
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = used.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    used.map_or_else(|| START.with(|start| start.elapsed().as_secs_f64()), |ns| ns * 1e-9)
}
