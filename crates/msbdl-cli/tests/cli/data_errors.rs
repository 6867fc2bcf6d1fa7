//! Checks that data which cannot be learnt from are refused in one line: file, modality, row.

use insta::assert_snapshot;
use ndarray::Array2;

use crate::folder::{Folder, values};

const FIT: &str = "fit --modality a=a.npy --modality b=b.npy --atoms 5 --out out.safetensors";

/// Fits `a` and a `b` that was changed.
fn fit_with(b: &Array2<f64>) -> String {
    let folder = Folder::new();
    folder.npy("b.npy", b);
    folder.refused(FIT)
}

#[test]
fn different_sample_counts() {
    assert_snapshot!(
        fit_with(&values(39, 5, 2)),
        @"b.npy: modality 'b' has 39 samples, but modality 'a' has 40"
    );
}

#[test]
fn infinite_values() {
    let mut b = values(40, 5, 2);
    b[[7, 3]] = f64::NEG_INFINITY;
    assert_snapshot!(
        fit_with(&b),
        @"b.npy: modality 'b', row 7, column 3: the value is infinite (counting from 0)"
    );
}

#[test]
fn infinite_values_under_a_header() {
    let folder = Folder::new();
    folder.file("b.csv", "width,height\n1,2\n3,inf\n");
    assert_snapshot!(
        folder.refused("fit --modality b=b.csv --atoms 1 --out out.safetensors"),
        @r#"b.csv: modality 'b', row 1, column 1: the value is infinite (counting from 0, column "height")"#
    );
}

#[test]
fn partly_missing_row() {
    let mut b = values(40, 5, 2);
    b[[7, 3]] = f64::NAN;
    assert_snapshot!(
        fit_with(&b),
        @"b.npy: modality 'b', row 7: 1 of 5 values are missing; a row must be complete or missing as a whole (counting from 0)"
    );
}

#[test]
fn modality_all_nan() {
    assert_snapshot!(
        fit_with(&Array2::from_elem((40, 5), f64::NAN)),
        @"b.npy: modality 'b' is missing in every sample"
    );
}

#[test]
fn modality_all_zero() {
    assert_snapshot!(
        fit_with(&Array2::zeros((40, 5))),
        @"b.npy: modality 'b' is nought in every sample: there is nothing to learn from"
    );
}

#[test]
fn modality_constant() {
    assert_snapshot!(
        fit_with(&Array2::from_elem((40, 5), 3.25)),
        @"b.npy: modality 'b' is the same in every sample: there is nothing to learn from"
    );
}

#[test]
fn sample_without_any_modality() {
    let folder = Folder::new();
    for (name, mut data) in [("a.npy", values(40, 6, 1)), ("b.npy", values(40, 5, 2))] {
        data.row_mut(11).fill(f64::NAN);
        folder.npy(name, &data);
    }
    assert_snapshot!(folder.refused(FIT), @"row 11: every modality is missing (counting from 0)");
}

#[test]
fn more_atoms_than_can_be_started() {
    assert_snapshot!(
        Folder::new().refused(&FIT.replace("--atoms 5", "--atoms 41")),
        @"--atoms: 41 atoms cannot be started from the 40 samples of modality 'a' that are not nought"
    );
}

#[test]
fn with_ids_the_sample_is_named_by_its_id() {
    let folder = Folder::new();
    folder.file("x.csv", "s1,1,2\ns2,3,4\n");
    folder.file("y.csv", "s2,1,2\ns3,5,\n");
    assert_snapshot!(
        folder.refused("fit --modality x=x.csv --modality y=y.csv --ids --atoms 1 --out out.safetensors"),
        @r#"y.csv: modality 'y', row 2: 1 of 2 values are missing; a row must be complete or missing as a whole (sample id "s3")"#
    );
}

#[test]
fn ids_that_nobody_shares() {
    let folder = Folder::new();
    folder.file("x.csv", "s1,1,2\ns2,3,4\n");
    folder.file("y.csv", "S1,1,2\nS2,5,6\n");
    assert_snapshot!(
        folder.refused("fit --modality x=x.csv --modality y=y.csv --ids --atoms 1 --out out.safetensors"),
        @r#"x: none of its sample ids occurs in another modality (for example "s1" in x, "S1" in y)"#
    );
}
