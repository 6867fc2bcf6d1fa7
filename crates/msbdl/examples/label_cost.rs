//! Times the iterations of whole fits with labels beside those without: `label_cost [REPEATS]`.
//!
//! The labels are ten classes, told by the largest coefficient; a fifth of the samples validates, as
//! by default, and what the looks at those cost is in the mean. Shown are milliseconds of processor
//! time per iteration where the system tells (Linux), the least of the repeats, and how many
//! iterations there were: labels that validation finds no more of end a fit early.

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
    println!("features  atoms samples | without    with (ms) | ratio | iterations");
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
        let (mut without, mut with) = (f64::INFINITY, f64::INFINITY);
        let mut counts = (0, 0);
        for _ in 0..repeats {
            let mut watch = Watch::default();
            fit(&data, &config, &mut |facts: &Facts| watch.see(facts))?;
            without = without.min(watch.mean());
            counts.0 = watch.count + 1;
            let mut watch = Watch::default();
            fit_task(&data, &labels, &task, &config, &mut |facts: &Facts| watch.see(facts))?;
            with = with.min(watch.mean());
            counts.1 = watch.count + 1;
        }
        println!(
            "{:9} {atoms:5} {samples:7} | {:7.2} {:7.2}      | {:5.2} | {} {}",
            features.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
            1e3 * without,
            1e3 * with,
            with / without,
            counts.0,
            counts.1,
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
