//! Makes synthetic data with a known truth.

use msbdl::synth::{Recipe, TreeRecipe, Truth};
use serde::Serialize;

use crate::args::Synth;
use crate::choices::{Coefficients, RecipeName};
use crate::fail::{Fail, Result};
use crate::settings::{list, real, whole};
use crate::{show, truth};

/// What recipe.json holds.
#[derive(Serialize)]
struct Record {
    recipe: RecipeName,
    modalities: Vec<String>,
    n_samples: usize,
    n_features: Sizes,
    n_atoms: Sizes,
    sparsity: usize,
    snr: Vec<f64>,
    missing: Vec<f64>,
    coefficients: Coefficients,
    /// Of trees alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf_on: Option<f64>,
    seed: u64,
}

/// One number for all modalities, or one for each.
#[derive(Serialize)]
#[serde(untagged)]
enum Sizes {
    Same(usize),
    Each(Vec<usize>),
}

impl Sizes {
    fn of(each: impl Iterator<Item = usize>) -> Self {
        let each: Vec<usize> = each.collect();
        match each.iter().all(|size| *size == each[0]) {
            true => Sizes::Same(each[0]),
            false => Sizes::Each(each),
        }
    }

    fn text(&self) -> String {
        match self {
            Sizes::Same(size) => size.to_string(),
            Sizes::Each(each) => each.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

pub fn run(args: &Synth) -> Result<()> {
    let drawn = |truth: msbdl::Result<Truth>| truth.map_err(|error| Fail::input(error.to_string()));
    let (recipe, leaf_on) = (recipe(args)?, real("--leaf-on", &args.leaf_on)?);
    truth::check_folder(&args.out)?;
    let truth = match args.recipe.case() {
        Some(case) => {
            let given = [
                ("features", args.features.is_some()),
                ("atoms", args.atoms.is_some()),
                ("coefficients", !matches!(args.coefficients, Coefficients::Normal)),
            ];
            if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(Fail::input(format!(
                    "--{option} is the paper's in the recipes of trees and cannot be given"
                )));
            }
            let tree = TreeRecipe::paper(case, recipe.seed);
            let Recipe { n_samples, sparsity, snr, missing, .. } = recipe.clone();
            drawn(TreeRecipe { n_samples, sparsity, snr, missing, leaf_on, ..tree }.draw())?
        }
        None if leaf_on != 1.0 => {
            return Err(Fail::input("--leaf-on must be used with a recipe of trees".to_owned()));
        }
        None => drawn(recipe.draw())?,
    };
    let record = Record {
        recipe: args.recipe,
        modalities: (0..recipe.snr.len()).map(truth::name).collect(),
        n_samples: recipe.n_samples,
        n_features: Sizes::of(truth.dictionaries.iter().map(|d| d.nrows())),
        n_atoms: Sizes::of(truth.dictionaries.iter().map(|d| d.ncols())),
        sparsity: recipe.sparsity,
        snr: recipe.snr.clone(),
        missing: recipe.missing.clone(),
        coefficients: args.coefficients,
        leaf_on: args.recipe.case().map(|_| leaf_on),
        seed: recipe.seed,
    };
    truth::save(&args.out, &truth, &record)?;
    show::print(&format!(
        "wrote {} samples of {} with {} features, and their truth, to {}\n",
        record.n_samples,
        record.modalities.join(", "),
        record.n_features.text(),
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
    let size = |option, given: &Option<String>, default| {
        given.as_deref().map_or(Ok(default), |text| whole(option, 1, text))
    };
    let recipe = Recipe {
        n_features: size("--features", &args.features, 20)?,
        n_atoms: size("--atoms", &args.atoms, 50)?,
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
