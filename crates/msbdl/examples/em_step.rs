//! Times one exact EM iteration on the paper's bimodal data: `em_step [THREADS [L N M]]`.
//!
//! Prints the fastest iteration in milliseconds; bench/em_step.py compares it with NumPy.

use msbdl::synth::Recipe;
use msbdl::{Config, Data, Facts, Next, Preset, fit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<usize> =
        std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let word = |k: usize, default: usize| words.get(k).copied().unwrap_or(default);
    let recipe = Recipe {
        n_samples: word(1, 1000),
        n_features: word(2, 20),
        n_atoms: word(3, 50),
        ..Recipe::paper(&[30.0, 10.0], 0)
    };
    let truth = recipe.draw()?;
    let named = truth.data.into_iter().enumerate().map(|(j, y)| (format!("mod{j}"), y));
    let data = Data::new(named.collect(), true)?;
    let (mut last, mut fastest) = (0.0, f64::INFINITY);
    let mut watch = |facts: &Facts| {
        fastest = f64::min(fastest, facts.seconds - last);
        last = facts.seconds;
        Next::Continue
    };
    // The paper's procedure: nothing but E-step and M-step in an iteration.
    let config = Config {
        preset: Preset::Paper,
        threads: word(0, 1),
        max_iter: Some(50),
        ..Config::new(recipe.n_atoms)
    };
    fit(&data, &config, &mut watch)?;
    println!("{:.4}", 1e3 * fastest);
    Ok(())
}
