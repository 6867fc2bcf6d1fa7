//! Measures how much of a known truth a model has found.

use msbdl::recovery::Found;
use msbdl::{Model, recovery};
use serde::Serialize;

use crate::args::Recovery;
use crate::encode::load;
use crate::fail::{Fail, Result};
use crate::show;
use crate::truth::{self, Known};

/// The JSON output; its names stay.
#[derive(Serialize)]
struct Report {
    model: String,
    truth: String,
    modalities: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    name: String,
    /// Share of the true atoms that were found.
    recovery: f64,
    /// What was found of the branches, if the truth has some with several atoms.
    #[serde(skip_serializing_if = "Option::is_none")]
    branches: Option<Branched>,
    /// The same if the supports were known.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    sigma2_found: f64,
    sigma2_true: f64,
}

/// Shares of the true branches of a modality that were found.
#[derive(Serialize)]
struct Branched {
    /// Atoms of branches with one.
    single: Option<f64>,
    /// Subspaces of branches with several atoms.
    subspaces: Option<f64>,
    /// Atoms of branches with several.
    atoms: Option<f64>,
    under_right_root: f64,
}

pub fn run(args: &Recovery) -> Result<()> {
    let model = load(&args.model)?;
    let known = truth::load(&args.truth)?;
    let mut report = Report {
        model: args.model.display().to_string(),
        truth: args.truth.display().to_string(),
        modalities: compare(&model, &known, args)?,
    };
    add_branches(&mut report.modalities, &model, &known, args)?;
    if args.limit {
        let limits = recovery::limit(&truth::load_all(&args.truth)?).map_err(Fail::run)?;
        for part in &mut report.modalities {
            let index = known.iter().position(|known| known.name == part.name);
            part.limit = index.and_then(|index| limits.get(index).copied());
        }
    }
    match args.json {
        true => show::json(&report),
        false => show::print(&report.text()),
    }
}

fn compare(model: &Model, known: &[Known], args: &Recovery) -> Result<Vec<Part>> {
    let path = args.model.display();
    let parts = model.modalities.iter().map(|found| {
        let name = &found.name;
        let Some(known) = known.iter().find(|known| known.name == *name) else {
            let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
            return Err(Fail::input(format!(
                "{path}: modality '{name}' is not in the truth, which has {}",
                names.join(", ")
            )));
        };
        let (n_found, n_known) = (found.dictionary.nrows(), known.dictionary.nrows());
        if n_found != n_known {
            return Err(Fail::input(format!(
                "{path}: modality '{name}' has {n_found} features, but the truth has {n_known}"
            )));
        }
        Ok(Part {
            name: name.clone(),
            recovery: recovery::recovery(known.dictionary.view(), found.dictionary.view()),
            branches: None,
            limit: None,
            sigma2_found: found.sigma2,
            sigma2_true: known.sigma2,
        })
    });
    parts.collect()
}

/// Compares branches, where the model has all modalities of a truth that has some.
fn add_branches(parts: &mut [Part], model: &Model, known: &[Known], args: &Recovery) -> Result<()> {
    let truth = truth::load_branches(&args.truth, known)?;
    let same = known.iter().map(|x| &x.name).eq(model.modalities.iter().map(|x| &x.name));
    let several = |j: &usize| truth.n_atoms(*j) > truth.count();
    if !same || !(0..known.len()).any(|j| several(&j)) {
        return Ok(());
    }
    let true_d: Vec<_> = known.iter().map(|x| x.dictionary.view()).collect();
    let found_d: Vec<_> = model.modalities.iter().map(|x| x.dictionary.view()).collect();
    let known = Found { dictionaries: &true_d, branches: &truth };
    let found = Found { dictionaries: &found_d, branches: &model.branches };
    for j in (0..true_d.len()).filter(several) {
        let share = recovery::branch_recovery(known, found, j);
        parts[j].branches = Some(Branched {
            single: share.single,
            subspaces: share.spans,
            atoms: share.atoms,
            under_right_root: share.under_root,
        });
    }
    Ok(())
}

impl Report {
    fn text(&self) -> String {
        let limited = self.modalities.iter().any(|part| part.limit.is_some());
        let mut head = vec!["modality", "recovered", "sigma^2 found", "sigma^2 true"];
        if limited {
            head.insert(2, "limit");
        }
        let rows = self.modalities.iter().map(|part| {
            let mut row = vec![
                part.name.clone(),
                show::percent(part.recovery),
                show::significant(part.sigma2_found),
                show::significant(part.sigma2_true),
            ];
            if limited {
                row.insert(2, part.limit.map_or("-".to_owned(), show::percent));
            }
            row
        });
        let mut text = show::table(&head, rows);
        for part in &self.modalities {
            let Some(branches) = &part.branches else { continue };
            let share = |share: Option<f64>| share.map_or("-".to_owned(), show::percent);
            text.push_str(&format!(
                "branches of {}: one leaf {}, subspaces of several {}, their atoms {}, \
                 under the right root {}\n",
                part.name,
                share(branches.single),
                share(branches.subspaces),
                share(branches.atoms),
                show::percent(branches.under_right_root)
            ));
        }
        text
    }
}
