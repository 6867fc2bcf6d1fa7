//! Measures what is found of trees over seeds: `trees CASE FROM TO [KEY=VALUE ...]`, a line a seed.
//!
//! Cases: A B C D (the paper's), three (roots 30 dB, leaves 30 and 10 dB, up to two each), four
//! (branches of one to four leaves, 30 / 30 dB). Keys: prior=hierarchical|tree|one-to-one, on=P
//! (leaves switch on with probability P), groups=given, sizes=given, preset=paper|msbdl-1..,
//! batch=L0, L, threads=T. Columns: root atoms; of each leaf modality single leaves, spans and atoms
//! of several leaves, branches under the right root, atoms; noise over truth; passes. Shares in per
//! cent.

use std::collections::HashMap;
use std::time::Instant;

use msbdl::recovery::{Found, branch_recovery, recovery};
use msbdl::synth::{Case, TreeRecipe};
use msbdl::{Config, Data, PerModality, Preset, PriorKind, Silent, fit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [case, from, to, rest @ ..] = words.as_slice() else {
        return Err("usage: trees CASE FROM TO [KEY=VALUE ...]".into());
    };
    let keys: HashMap<&str, &str> = rest.iter().filter_map(|word| word.split_once('=')).collect();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for seed in from.parse::<u64>()?..to.parse()? {
        let mut recipe = recipe(case, seed)?;
        if let Some(on) = keys.get("on") {
            recipe.leaf_on = on.parse()?;
        }
        if let Some(samples) = keys.get("L") {
            recipe.n_samples = samples.parse()?;
        }
        let truth = recipe.draw()?;
        let name = |j: usize| format!("mod{}", j + 1);
        let names: Vec<String> = (0..truth.data.len()).map(name).collect();
        let sizes = |j: usize| (name(j), truth.branches.n_atoms(j));
        let given = if keys.contains_key("sizes") { truth.data.len() } else { 1 };
        let mut config = Config {
            n_atoms: PerModality::ByName((0..given).map(sizes).collect()),
            prior: match keys.get("prior") {
                Some(&"hierarchical") => PriorKind::Hierarchical,
                Some(&"tree") => PriorKind::Tree,
                Some(&"one-to-one") => PriorKind::OneToOne,
                _ => PriorKind::AtomToSubspace,
            },
            root: Some("mod1".into()),
            max_leaves: Some(if case == "four" { 4 } else { 2 }),
            batch_size: keys.get("batch").map(|x| x.parse()).transpose()?,
            seed,
            threads: keys.get("threads").map_or(Ok(1), |x| x.parse())?,
            preset: match keys.get("preset") {
                Some(&"paper") => Preset::Paper,
                Some(&"msbdl-1") => Preset::Msbdl1,
                Some(&"msbdl-2") => Preset::Msbdl2,
                Some(&"msbdl-3") => Preset::Msbdl3,
                Some(&"msbdl-4") => Preset::Msbdl4,
                _ => Preset::Auto,
            },
            ..Config::new(1)
        };
        if config.prior == PriorKind::OneToOne {
            // As many atoms in all, for comparing times.
            let total: usize = (0..truth.data.len()).map(|j| truth.branches.n_atoms(j)).sum();
            config.n_atoms = PerModality::Same(total / truth.data.len());
            (config.root, config.max_leaves) = (None, None);
        }
        if keys.contains_key("groups") {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            config.groups = Some(truth.branches.to_groups(&names));
            config.max_leaves = None;
        }
        let data = Data::new(names.into_iter().zip(truth.data.iter().cloned()).collect(), true)?;
        let started = Instant::now();
        let model = fit(&data, &config, &mut Silent)?;
        let seconds = started.elapsed().as_secs_f64();
        let true_d: Vec<_> = truth.dictionaries.iter().map(|d| d.view()).collect();
        let found_d: Vec<_> = model.modalities.iter().map(|x| x.dictionary.view()).collect();
        let known = Found { dictionaries: &true_d, branches: &truth.branches };
        let found = Found { dictionaries: &found_d, branches: &model.branches };
        let mut row = vec![100.0 * recovery(true_d[0], found_d[0])];
        for (j, dictionary) in found_d.iter().enumerate().skip(1) {
            let part = branch_recovery(known, found, j);
            let shares = [part.single, part.spans, part.atoms, Some(part.under_root)];
            row.extend(shares.map(|share| 100.0 * share.unwrap_or(f64::NAN)));
            row.push(dictionary.ncols() as f64);
        }
        row.extend(model.modalities.iter().zip(&truth.sigma2).map(|(x, s)| x.sigma2 / s));
        row.push(model.history.last().map_or(0.0, |facts| facts.e_steps));
        println!("seed {seed:3}  {row:6.1?}  {} {seconds:.1} s", u8::from(model.converged()));
        rows.push(row);
    }
    let mean = |k: usize| rows.iter().map(|row| row[k]).sum::<f64>() / rows.len() as f64;
    let width = rows.first().map_or(0, Vec::len);
    println!("mean      {:6.1?}", (0..width).map(mean).collect::<Vec<_>>());
    Ok(())
}

fn recipe(case: &str, seed: u64) -> Result<TreeRecipe, String> {
    let paper = |case| TreeRecipe::paper(case, seed);
    let cycle = |most: usize| (0..50).map(|k| 1 + k % most).collect::<Vec<_>>();
    Ok(match case {
        "A" => paper(Case::A),
        "B" => paper(Case::B),
        "C" => paper(Case::C),
        "D" => paper(Case::D),
        "three" => TreeRecipe {
            n_features: vec![20, 30, 30],
            leaves: vec![cycle(2), cycle(2)],
            snr: vec![30.0, 30.0, 10.0],
            ..paper(Case::A)
        },
        "four" => TreeRecipe { n_features: vec![20, 60], leaves: vec![cycle(4)], ..paper(Case::A) },
        _ => return Err(format!("no case {case}")),
    })
}
