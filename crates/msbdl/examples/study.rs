//! Measures recovery over seeds: `study SNR,SNR,... FROM TO [KEY=VALUE ...]`, one line a seed.
//!
//! Keys: N M L S (sizes), missing=.2,.4, coefficients=uniform, preset=paper|msbdl-1..4,
//! batch=L0, sigma0=1,3.16, center=false, limit=true, threads=T, complete=true (drop samples
//! that lack a modality).

use std::collections::HashMap;
use std::time::Instant;

use msbdl::synth::{Coefficients, Recipe};
use msbdl::{Config, Data, PerModality, Preset, Silent, fit, recovery};
use ndarray::Axis;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [snr, from, to, rest @ ..] = words.as_slice() else {
        return Err("usage: study SNR,SNR,... FROM TO [KEY=VALUE ...]".into());
    };
    let keys: HashMap<&str, &str> = rest.iter().filter_map(|word| word.split_once('=')).collect();
    let number = |key: &str, default: usize| keys.get(key).map_or(Ok(default), |x| x.parse());
    let list = |x: &str| x.split(',').map(str::parse).collect::<Result<Vec<f64>, _>>();
    let snr = list(snr)?;
    let mut rows = Vec::new();
    for seed in from.parse::<u64>()?..to.parse()? {
        let recipe = Recipe {
            n_features: number("N", 20)?,
            n_atoms: number("M", 50)?,
            n_samples: number("L", 1000)?,
            sparsity: number("S", 5)?,
            missing: keys.get("missing").map_or(Ok(Vec::new()), |x| list(x))?,
            coefficients: match keys.get("coefficients") {
                Some(&"uniform") => Coefficients::Uniform,
                _ => Coefficients::Normal,
            },
            ..Recipe::paper(&snr, seed)
        };
        let truth = recipe.draw()?;
        let mut config = Config::new(recipe.n_atoms);
        config.seed = seed;
        config.threads = number("threads", 0)?;
        config.preset = match keys.get("preset") {
            Some(&"paper") => Preset::Paper,
            Some(&"msbdl-1") => Preset::Msbdl1,
            Some(&"msbdl-2") => Preset::Msbdl2,
            Some(&"msbdl-3") => Preset::Msbdl3,
            Some(&"msbdl-4") => Preset::Msbdl4,
            _ => Preset::Auto,
        };
        config.batch_size = keys.get("batch").map(|x| x.parse()).transpose()?;
        let name = |j: usize| format!("mod{}", j + 1);
        if let Some(sigma0) = keys.get("sigma0") {
            let each = list(sigma0)?.into_iter().enumerate().map(|(j, s)| (name(j), s));
            config.sigma0 = Some(PerModality::ByName(each.collect()));
        }
        let keep: Vec<usize> = (0..recipe.n_samples)
            .filter(|&i| {
                !keys.contains_key("complete") || truth.data.iter().all(|y| !y[[i, 0]].is_nan())
            })
            .collect();
        let named = truth.data.iter().enumerate();
        let named = named.map(|(j, y)| (name(j), y.select(Axis(0), &keep))).collect();
        let data = Data::new(named, keys.get("center") != Some(&"false"))?;
        let started = Instant::now();
        let model = fit(&data, &config, &mut Silent)?;
        let seconds = started.elapsed().as_secs_f64();
        let mut row = Vec::new();
        for (j, found) in model.modalities.iter().enumerate() {
            let share = recovery::recovery(truth.dictionaries[j].view(), found.dictionary.view());
            row.push(100.0 * share);
        }
        row.extend(model.modalities.iter().zip(&truth.sigma2).map(|(x, s)| x.sigma2 / s));
        row.push(model.history.last().map_or(0.0, |facts| facts.e_steps));
        if keys.contains_key("limit") {
            row.extend(recovery::limit(&truth)?.iter().map(|x| 100.0 * x));
        }
        println!("seed {seed:3}  {row:7.2?}  {} {seconds:.2} s", u8::from(model.converged()));
        rows.push(row);
    }
    let mean = |k: usize| rows.iter().map(|row| row[k]).sum::<f64>() / rows.len() as f64;
    let width = rows.first().map_or(0, Vec::len);
    println!("mean      {:7.2?}", (0..width).map(mean).collect::<Vec<_>>());
    Ok(())
}
