//! Learns small trees whole: branches found, given, interrupted; what a user relies on.

mod common;

use std::collections::BTreeMap;

use common::check_golden;
use msbdl::recovery::{Found, branch_recovery, recovery};
use msbdl::synth::{Case, TreeRecipe, Truth};
use msbdl::{
    Config, Data, Facts, Groups, Model, Next, PerModality, Place, Preset, PriorKind, Silent,
    StopReason, fit,
};

/// Sixteen roots with one or two leaves.
fn small(seed: u64, leaf_on: f64) -> Truth {
    let recipe = TreeRecipe {
        n_features: vec![10, 14],
        leaves: vec![(0..16).map(|k| 1 + k % 2).collect()],
        n_samples: 500,
        sparsity: 2,
        leaf_on,
        ..TreeRecipe::paper(Case::B, seed)
    };
    recipe.draw().unwrap()
}

fn data(truth: &Truth) -> Data {
    let named = truth.data.iter().enumerate().map(|(j, y)| (format!("mod{}", j + 1), y.clone()));
    Data::new(named.collect(), true).unwrap()
}

fn config(prior: PriorKind) -> Config {
    Config {
        n_atoms: PerModality::ByName(vec![("mod1".into(), 16)]),
        prior,
        root: Some("mod1".into()),
        max_leaves: Some(2),
        ..Config::new(1)
    }
}

/// Root atoms; leaves of branches with one; spans and atoms of those with two.
fn found(truth: &Truth, model: &Model) -> [f64; 4] {
    let known: Vec<_> = truth.dictionaries.iter().map(|d| d.view()).collect();
    let learnt: Vec<_> = model.modalities.iter().map(|x| x.dictionary.view()).collect();
    let part = branch_recovery(
        Found { dictionaries: &known, branches: &truth.branches },
        Found { dictionaries: &learnt, branches: &model.branches },
        1,
    );
    let share = |share: Option<f64>| 100.0 * share.unwrap();
    [
        100.0 * recovery(known[0], learnt[0]),
        share(part.single),
        share(part.spans),
        share(part.atoms),
    ]
}

fn mean(all: &[[f64; 4]]) -> [f64; 4] {
    std::array::from_fn(|i| all.iter().map(|x| x[i]).sum::<f64>() / all.len() as f64)
}

#[test]
fn branches_are_learnt() {
    let learn = |seed| {
        let truth = small(seed, 1.0);
        let model = fit(&data(&truth), &config(PriorKind::AtomToSubspace), &mut Silent).unwrap();
        found(&truth, &model)
    };
    let [roots, single, spans, _] = mean(&[0, 1, 2].map(learn));
    assert!(roots > 90.0 && single > 80.0 && spans > 80.0, "{roots} {single} {spans}");
}

/// Leaves that switch are identified as atoms; leaves that do not are not, and that is said.
#[test]
fn atoms_are_identified_where_leaves_switch() {
    let both = |leaf_on| {
        let truth = small(3, leaf_on);
        let names = ["mod1", "mod2"];
        let groups = Some(truth.branches.to_groups(&names));
        let given = Config { groups, max_leaves: None, ..config(PriorKind::Tree) };
        let model = fit(&data(&truth), &given, &mut Silent).unwrap();
        let of_two = (0..16).filter(|&k| model.branches.atoms(1, k).len() == 2);
        let identified = of_two.filter(|&k| model.identified[k]).count();
        (found(&truth, &model)[3], identified)
    };
    let (atoms, identified) = both(0.5);
    assert!(atoms > 75.0 && identified >= 6, "{atoms} % of the atoms, {identified} of 8 branches");
    let (_, identified) = both(1.0);
    assert!(identified <= 2, "{identified} of 8 branches");
}

#[test]
fn every_prior_and_preset_ends_in_a_model_that_codes() {
    let truth = small(1, 0.7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    for prior in [PriorKind::AtomToSubspace, PriorKind::Hierarchical, PriorKind::Tree] {
        for preset in [Preset::Auto, Preset::Paper, Preset::Msbdl1, Preset::Msbdl4] {
            let sizes = vec![("mod1".to_owned(), 16), ("mod2".to_owned(), 24)];
            let config = Config {
                n_atoms: PerModality::ByName(sizes),
                preset,
                alpha: (preset == Preset::Paper).then_some(0.8),
                max_iter: (preset != Preset::Paper).then_some(60),
                ..config(prior)
            };
            let model = fit(&data(&truth), &config, &mut Silent).unwrap();
            if preset == Preset::Paper {
                assert_eq!(model.modalities[1].dictionary.ncols(), 24, "pruned to what was given");
            }
            model.save(&path).unwrap();
            let again = Model::load(&path).unwrap();
            assert_eq!((again.prior, &again.branches), (prior, &model.branches));
            assert_eq!(again.identified, model.identified);
            for one in 0..2 {
                let part = vec![(format!("mod{}", one + 1), truth.data[one].clone())];
                let codes = again.encode(part).unwrap();
                assert_eq!(codes.gamma.dim(), (500, 16));
                assert!(codes.modalities[0].mean.iter().all(|x| x.is_finite()));
                assert!(codes.log_evidence.iter().all(|x| x.is_finite()));
            }
        }
    }
}

/// Stopped anywhere, a fit is a model with unit atoms and branches of its own.
#[test]
fn a_stopped_fit_is_a_model() {
    let truth = small(2, 0.5);
    let whole = fit(&data(&truth), &config(PriorKind::Tree), &mut Silent).unwrap().history.len();
    for stop in [3, whole / 3, whole / 2, whole - 20] {
        let mut observer =
            |facts: &Facts| if facts.iteration == stop { Next::Stop } else { Next::Continue };
        let model = fit(&data(&truth), &config(PriorKind::Tree), &mut observer).unwrap();
        assert_eq!(model.stop_reason, StopReason::Interrupted);
        for x in &model.modalities {
            for d in x.dictionary.columns() {
                assert!((d.dot(&d) - 1.0).abs() < 1e-9, "stopped at {stop}: {}", d.dot(&d));
            }
        }
        let named = truth.data.iter().enumerate();
        let named = named.map(|(j, y)| (format!("mod{}", j + 1), y.clone())).collect();
        assert_eq!(model.encode(named).unwrap().gamma.dim(), (500, 16));
    }
}

/// Branches that were given end as they were given, wherever the run does; so do numbers of atoms.
#[test]
fn a_stopped_fit_has_the_given_branches() {
    let truth = small(2, 0.5);
    // Leaves numbered from the last branch to the first, and backwards in a branch.
    let mut left = 24;
    let mut branch = |k: usize| {
        let leaves: Vec<usize> = (0..1 + k % 2).map(|r| left - 1 - r).collect();
        left -= leaves.len();
        let places = |atoms: Vec<usize>| atoms.into_iter().map(Place::Atom).collect();
        BTreeMap::from([("mod1".into(), places(vec![k])), ("mod2".into(), places(leaves))])
    };
    let groups: Groups = (0..16).map(&mut branch).collect();
    let sizes = || vec![("mod1".to_owned(), 16), ("mod2".to_owned(), 24)];
    // While noise falls, while leaves are chosen, and after that.
    for stop in [1, 130, 400] {
        for preset in [Preset::Auto, Preset::Paper] {
            let learnt = Config {
                preset,
                n_atoms: PerModality::ByName(sizes()),
                alpha: (preset == Preset::Paper).then_some(0.8),
                max_iter: Some(stop),
                ..config(PriorKind::Tree)
            };
            let given = Config { groups: Some(groups.clone()), max_leaves: None, ..learnt.clone() };
            let model = fit(&data(&truth), &given, &mut Silent).unwrap();
            assert_eq!(model.groups(), groups, "{preset:?} stopped at {stop}");
            assert_eq!(model.modalities[1].dictionary.ncols(), 24);
            let learnt = fit(&data(&truth), &learnt, &mut Silent).unwrap();
            assert_eq!(learnt.modalities[1].dictionary.ncols(), 24, "{preset:?} at {stop}");
            assert_eq!(learnt.branches.n_atoms(1), 24);
        }
    }
}

/// Every tree prior on a small case, against what it gave before (UPDATE_GOLDEN=1 writes anew).
#[test]
fn trees_are_as_before() {
    let truth = small(4, 0.7);
    let mut found = String::new();
    for prior in [PriorKind::AtomToSubspace, PriorKind::Hierarchical, PriorKind::Tree] {
        let model = fit(&data(&truth), &config(prior), &mut Silent).unwrap();
        for x in &model.modalities {
            // Neither signs nor the order of the leaves matter.
            let total: f64 = x.dictionary.iter().map(|d| d.abs()).sum();
            found += &format!("{prior:?} {} {:.9e} {total:.9e}\n", x.name, x.sigma2);
        }
        let sizes: Vec<_> = (0..16).map(|k| model.branches.atoms(1, k).len()).collect();
        found += &format!("{prior:?} leaves {sizes:?} {:?}\n", model.identified);
    }
    // A whole fit makes more of what instruction sets differ by.
    check_golden("trees.txt", &found, 5e-3);
}
