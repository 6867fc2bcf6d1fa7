//! Times one exact EM iteration on the paper's bimodal data:
//! `em_step [THREADS [L N M [ITERATIONS [memory]]]]`.
//!
//! Prints the fastest iteration in milliseconds, or the peak memory of the process in MiB.

use std::error::Error;

use msbdl::synth::Recipe;
use msbdl::{Config, Data, Facts, Next, Preset, fit};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |k: usize, default: usize| match words.get(k) {
        Some(word) => word.parse(),
        None => Ok(default),
    };
    let recipe = Recipe {
        n_samples: word(1, 1000)?,
        n_features: word(2, 20)?,
        n_atoms: word(3, 50)?,
        ..Recipe::paper(&[30.0, 10.0], 0)
    };
    let truth = recipe.draw()?;
    let named = truth.data.into_iter().enumerate().map(|(j, y)| (format!("mod{j}"), y));
    let data = Data::new(named.collect(), true)?;
    let (mut last, mut fastest) = (0.0, f64::INFINITY);
    let mut watch = |facts: &Facts| {
        // In the first iteration all samples have the same variances, which is a case of its own.
        if facts.iteration > 1 {
            fastest = f64::min(fastest, facts.seconds - last);
        }
        last = facts.seconds;
        Next::Continue
    };
    // The paper's procedure: nothing but E-step and M-step in an iteration.
    let config = Config {
        preset: Preset::Paper,
        threads: word(0, 1)?,
        max_iter: Some(word(4, 30)?),
        ..Config::new(recipe.n_atoms)
    };
    fit(&data, &config, &mut watch)?;
    match words.get(5) {
        Some(_) => println!("{}", peak_memory().unwrap_or(0) / 1024),
        None => println!("{:.4}", 1e3 * fastest),
    }
    Ok(())
}

/// KiB, as Linux counts them.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
