//! Makes synthetic data with a known truth.

use msbdl::synth::Recipe;
use serde::Serialize;

use crate::args::Synth;
use crate::choices::{Coefficients, RecipeName};
use crate::fail::{Fail, Result};
use crate::settings::{list, whole};
use crate::{show, truth};

/// What recipe.json holds.
#[derive(Serialize)]
struct Record {
    recipe: RecipeName,
    modalities: Vec<String>,
    n_samples: usize,
    n_features: usize,
    n_atoms: usize,
    sparsity: usize,
    snr: Vec<f64>,
    missing: Vec<f64>,
    coefficients: Coefficients,
    seed: u64,
}

pub fn run(args: &Synth) -> Result<()> {
    let recipe = recipe(args)?;
    truth::check_folder(&args.out)?;
    let truth = recipe.draw().map_err(|error| Fail::input(error.to_string()))?;
    let record = Record {
        recipe: args.recipe,
        modalities: (0..recipe.snr.len()).map(truth::name).collect(),
        n_samples: recipe.n_samples,
        n_features: recipe.n_features,
        n_atoms: recipe.n_atoms,
        sparsity: recipe.sparsity,
        snr: recipe.snr.clone(),
        missing: recipe.missing.clone(),
        coefficients: args.coefficients,
        seed: recipe.seed,
    };
    truth::save(&args.out, &truth, &record)?;
    show::print(&format!(
        "wrote {} samples of {} with {} features, and their truth, to {}\n",
        record.n_samples,
        record.modalities.join(", "),
        record.n_features,
        args.out.display()
    ))
}

fn recipe(args: &Synth) -> Result<Recipe> {
    let paper = args.recipe.snr();
    let snr = match &args.snr {
        Some(text) => list("--snr", text, paper.len())?,
        None => paper.to_vec(),
    };
    let missing = match &args.missing {
        Some(text) => list("--missing", text, paper.len())?,
        None => Vec::new(),
    };
    let recipe = Recipe {
        n_features: whole("--features", 1, &args.features)?,
        n_atoms: whole("--atoms", 1, &args.atoms)?,
        n_samples: whole("--samples", 1, &args.samples)?,
        sparsity: whole("--sparsity", 1, &args.sparsity)?,
        snr,
        missing,
        coefficients: args.coefficients.into(),
        seed: whole("--seed", 0, &args.seed)?,
    };
    check(&recipe)?;
    Ok(recipe)
}

/// Eight gigabytes a matrix; beyond it a typing error is likelier than a wish.
const MOST_VALUES: usize = 1_000_000_000;

fn check(recipe: &Recipe) -> Result<()> {
    let bad = |problem: String| Err(Fail::input(problem));
    let (n, m, l) = (recipe.n_features, recipe.n_atoms, recipe.n_samples);
    if recipe.sparsity > m {
        return bad(format!("--sparsity must be at most --atoms, {m}, not {}", recipe.sparsity));
    }
    for (option, (a, b)) in [
        ("--samples times --features", (l, n)),
        ("--samples times --atoms", (l, m)),
        ("--features times --atoms", (n, m)),
    ] {
        if a.checked_mul(b).is_none_or(|values| values > MOST_VALUES) {
            return bad(format!("{option} must be at most {MOST_VALUES}, not {a} times {b}"));
        }
    }
    if let Some(snr) = recipe.snr.iter().find(|snr| !(-100.0..=300.0).contains(*snr)) {
        return bad(format!("--snr must be between -100 and 300 dB, not {snr}"));
    }
    if let Some(share) = recipe.missing.iter().find(|share| !(0.0..1.0).contains(*share)) {
        return bad(format!("--missing must be at least 0 and below 1, not {share}"));
    }
    let lacking = recipe.missing.iter().map(|share| (share * l as f64).round());
    if lacking.sum::<f64>() > l as f64 {
        return bad("--missing must add up to at most 1: no sample lacks two modalities".into());
    }
    Ok(())
}
