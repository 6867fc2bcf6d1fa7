//! Fits dictionaries of different sizes, and refuses groups that are none.

use insta::assert_snapshot;
use serde_json::Value;

use crate::folder::Folder;

/// Fits `a` and `b` with these options and groups.
fn refused(groups: &str, options: &str) -> String {
    let folder = Folder::new();
    folder.file("g.json", groups);
    let files = "fit --modality a=a.npy --modality b=b.npy --out out.safetensors";
    folder.refused(&format!("{files} --prior tree {options}"))
}

fn refused_groups(groups: &str) -> String {
    refused(groups, "--groups g.json")
}

#[test]
fn groups_that_are_none() {
    assert_snapshot!(
        refused_groups(r#"[{"a":[0],"b":[0]},{"a":[1],"c":[1]}]"#),
        @"--groups: unknown modality 'c'; the modalities are a, b"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[0],"b":[0,1]},{"a":[1],"b":[1]}]"#),
        @"--groups: atom 1 of modality 'b' is in branch 0 and again in branch 1"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[0],"b":[0,3]},{"a":[1],"b":[1]}]"#),
        @"--groups: atom 2 of modality 'b' is in no branch"
    );
    assert_snapshot!(
        refused(r#"[{"a":[0],"b":[0]},{"a":[1],"b":[1]}]"#, "--groups g.json --atoms a=2 --atoms b=3"),
        @"--groups: atom 2 of modality 'b' is in no branch"
    );
    assert_snapshot!(
        refused(r#"[{"a":[0],"b":[0,7]},{"a":[1],"b":[1]}]"#, "--groups g.json --atoms a=2 --atoms b=3"),
        @"--groups: branch 0 has atom 7 of modality 'b', which has 3 atoms"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[0,1],"b":[0]},{"a":[2],"b":[1,2]}]"#),
        @"--groups: no modality has one atom in every branch, as the root must"
    );
    assert_snapshot!(
        refused(r#"[{"a":[0],"b":[0]},{"b":[1]}]"#, "--groups g.json --root a"),
        @"--groups: branch 1 has 0 atoms of the root modality 'a' instead of one"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[0],"b":[{"atom":0,"under":["b",1]},{"atom":1,"under":["b",0]}]}]"#),
        @"--groups: atom 0 of modality 'b' hangs, in the end, under itself"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[0],"b":[0]},{"a":[1],"b":[{"atom":1,"under":["b",0]}]}]"#),
        @"--groups: atom 1 of modality 'b' hangs under atom 0 of modality 'b', which is not in its branch"
    );
    assert_snapshot!(
        refused_groups(r#"[{"a":[{"atom":0,"under":["b",0]}],"b":[0]}]"#),
        @"--groups: atom 0 of modality 'a' is a root and cannot hang under another atom"
    );
}

#[test]
fn files_of_groups() {
    let problem = refused_groups("{}");
    assert!(problem.starts_with("--groups: g.json: not a list of branches"), "{problem}");
    let problem = refused("", "--groups nowhere.json");
    assert!(problem.starts_with("--groups: nowhere.json: cannot be read"), "{problem}");
}

#[test]
fn roots_and_leaves() {
    assert_snapshot!(
        refused("", "--atoms a=3 --root a --max-leaves 0"),
        @"--max-leaves must be at least 1, not 0"
    );
    assert_snapshot!(
        refused("", "--atoms a=3 --root c --max-leaves 2"),
        @"--root: unknown modality 'c'; the modalities are a, b"
    );
    assert_snapshot!(
        refused("", "--atoms a=3 --max-leaves 2"),
        @"--root must be given, or groups instead, with another prior than one-to-one, not missing"
    );
    assert_snapshot!(
        refused("", "--atoms b=3 --root a --max-leaves 2"),
        @"--atoms must be given for the root, not nothing for 'a'"
    );
    assert_snapshot!(
        refused("", "--atoms a=3 --root a"),
        @"--max-leaves must be given where the number of atoms is to be learnt, not nothing for 'b'"
    );
    assert_snapshot!(
        refused("", "--atoms a=3 --atoms b=9 --root a --max-leaves 2"),
        @"--atoms must be from one to 2 for each of the 3 atoms of the root in modality 'b', not 9"
    );
    assert_snapshot!(
        refused("", "--atoms a=3 --root a --max-leaves 2 --preset paper"),
        @"--atoms must be given for every modality with the preset 'paper', not nothing for 'b'"
    );
    assert_snapshot!(
        refused(r#"[{"a":[0],"b":[0]}]"#, "--groups g.json --max-leaves 2"),
        @"--max-leaves must be left out where groups are given, not given"
    );
    assert_snapshot!(
        refused("", "--prior one-to-one --atoms 3 --root a").replace("the argument", "argument"),
        @"argument '--prior <PRIOR>' cannot be used multiple times; see 'msbdl fit --help'"
    );
}

#[test]
fn options_of_trees_need_a_tree() {
    let line = "fit --modality a=a.npy --modality b=b.npy --out out.safetensors --atoms 3";
    for (option, value) in [("root", "a"), ("max-leaves", "2")] {
        assert_eq!(
            Folder::new().refused(&format!("{line} --{option} {value}")),
            format!("--{option} must be used with another prior than one-to-one, not given")
        );
    }
}

#[test]
fn a_root_that_no_sample_has() {
    let folder = Folder::new();
    folder.npy("none.npy", &ndarray::Array2::from_elem((40, 3), f64::NAN));
    let line = "fit --modality a=none.npy --modality b=b.npy --prior tree --root a --atoms a=3 \
                --max-leaves 2 --out out.safetensors";
    assert_snapshot!(folder.refused(line), @"none.npy: modality 'a' is missing in every sample");
}

#[test]
fn recipes_of_trees() {
    let folder = Folder::empty();
    assert_snapshot!(
        folder.refused("synth --recipe tree-A --leaf-on 0 --seed 1 --out s"),
        @"leaf-on must be above 0 and at most 1, not 0"
    );
    assert_snapshot!(
        folder.refused("synth --recipe bimodal --leaf-on .5 --seed 1 --out s"),
        @"--leaf-on must be used with a recipe of trees"
    );
    assert_snapshot!(
        folder.refused("synth --recipe tree-A --atoms 5 --seed 1 --out s"),
        @"--atoms is the paper's in the recipes of trees and cannot be given"
    );
}

/// Synth, fit with the true groups, info, recovery, encode; every prior.
#[test]
fn a_session_with_trees() {
    let folder = Folder::empty();
    let told = folder.ok("synth --recipe tree-B --samples 300 --leaf-on .5 --seed 1 --out s");
    assert_snapshot!(
        told,
        @"wrote 300 samples of mod1, mod2 with 20, 30 features, and their truth, to s"
    );
    for prior in ["atom-to-subspace", "hierarchical", "tree"] {
        let files = "--modality mod1=s/mod1.npy --modality mod2=s/mod2.npy";
        folder.ok(&format!(
            "fit {files} --prior {prior} --groups s/groups.json --max-iter 30 --out m.safetensors"
        ));
        let info = folder.ok("info m.safetensors");
        assert!(info.contains("branches 50, rooted in mod1"), "{info}");
        assert!(info.contains("subspace only in"), "{info}");
        let info: Value = serde_json::from_str(&folder.ok("info m.safetensors --json")).unwrap();
        assert_eq!(info["branches"]["groups"].as_array().unwrap().len(), 50);
        let recovery = folder.ok("recovery --model m.safetensors --truth s");
        assert!(recovery.contains("branches of mod2: one leaf "), "{recovery}");
        folder.ok("encode --model m.safetensors --modality mod2=s/mod2.npy --out c.npz");
        assert_eq!(folder.array("c.npz", "gamma").dim(), (300, 50));
    }
}
