//! Options out of range are refused in one line that names the option.

use insta::assert_snapshot;

use crate::folder::Folder;

/// Fits `a` and `b` with these options.
fn fit_with(options: &str) -> String {
    let line = format!("fit --modality a=a.npy --modality b=b.npy --out out.safetensors {options}");
    Folder::new().refused(&line)
}

#[test]
fn same_name_twice() {
    assert_snapshot!(
        fit_with("--atoms 5 --modality a=c.npy"),
        @"--modality: 'a' was given twice, as a.npy and as c.npy"
    );
}

#[test]
fn modality_without_a_name() {
    for option in ["a.npy", "=a.npy", "a="] {
        let line = format!("fit --modality {option} --atoms 5 --out out.safetensors");
        assert_eq!(
            Folder::new().refused(&line),
            format!("--modality must be NAME=FILE, as in image=image.npy, not '{option}'")
        );
    }
}

#[test]
fn unknown_name_in_atoms() {
    assert_snapshot!(
        fit_with("--atoms a=5 --atoms c=5"),
        @"--atoms: unknown modality 'c'; the modalities are a, b"
    );
}

#[test]
fn missing_name_in_atoms() {
    assert_snapshot!(
        fit_with("--atoms a=5"),
        @"--atoms must be given for every modality, not nothing for 'b'"
    );
}

#[test]
fn same_name_twice_in_atoms() {
    assert_snapshot!(
        fit_with("--atoms a=5 --atoms b=5 --atoms a=5"),
        @"--atoms must be given once a modality, not 'a' twice"
    );
}

#[test]
fn different_numbers_of_atoms() {
    assert_snapshot!(
        fit_with("--atoms a=5 --atoms b=6"),
        @"--atoms must be the same number in every modality (one-to-one prior), not 5 and 6"
    );
}

#[test]
fn one_number_and_names_in_atoms() {
    assert_snapshot!(
        fit_with("--atoms 5 --atoms a=5"),
        @"--atoms takes either one number or NAME=VALUE for each modality, not both"
    );
}

#[test]
fn two_numbers_in_atoms() {
    assert_snapshot!(
        fit_with("--atoms 5 --atoms 6"),
        @"--atoms was given 2 times; give it once, or as NAME=VALUE for each modality"
    );
}

#[test]
fn no_atoms() {
    assert_snapshot!(fit_with("--atoms 0"), @"--atoms must be at least 1, not 0");
}

#[test]
fn negative_atoms() {
    assert_snapshot!(fit_with("--atoms -3"), @"--atoms must be at least 1, not -3");
    assert_snapshot!(
        fit_with("--atoms a=5 --atoms b=-3"),
        @"--atoms of 'b' must be at least 1, not -3"
    );
}

#[test]
fn atoms_that_are_no_whole_number() {
    assert_snapshot!(fit_with("--atoms many"), @"--atoms must be a whole number, not 'many'");
    assert_snapshot!(fit_with("--atoms 5.5"), @"--atoms must be a whole number, not '5.5'");
    assert_snapshot!(
        fit_with("--atoms 99999999999999999999"),
        @"--atoms is too large: 99999999999999999999"
    );
}

#[test]
fn unknown_name_in_sigma0() {
    assert_snapshot!(
        fit_with("--atoms 5 --preset paper --sigma0 c=1"),
        @"--sigma0: unknown modality 'c'; the modalities are a, b"
    );
}

#[test]
fn sigma0_that_is_not_positive() {
    for sigma in ["0", "-1", "nan", "inf", "a=-1"] {
        let options = format!("--atoms 5 --preset paper --sigma0 {sigma}");
        let value = sigma.trim_start_matches("a=").replace("nan", "NaN");
        assert_eq!(fit_with(&options), format!("--sigma0 must be positive, not {value}"));
    }
}

#[test]
fn sigma_inf_that_is_not_positive() {
    assert_snapshot!(
        fit_with("--atoms 5 --preset paper --sigma-inf -0.5"),
        @"--sigma-inf must be positive, not -0.5"
    );
}

#[test]
fn sigma0_that_is_no_number() {
    assert_snapshot!(
        fit_with("--atoms 5 --preset paper --sigma0 low"),
        @"--sigma0 must be a number, not 'low'"
    );
}

#[test]
fn noise_options_without_the_preset_that_uses_them() {
    for option in ["sigma0", "sigma-inf", "alpha"] {
        assert_eq!(
            fit_with(&format!("--atoms 5 --{option} 0.5")),
            format!(
                "--{option} must be left to the data, or used with the preset 'paper', not given"
            )
        );
    }
}

#[test]
fn alpha_outside_its_range() {
    for alpha in ["0", "-0.5"] {
        assert_eq!(
            fit_with(&format!("--atoms 5 --preset paper --alpha {alpha}")),
            format!("--alpha must be positive, not {alpha}")
        );
    }
    for alpha in ["1", "1.5"] {
        assert_eq!(
            fit_with(&format!("--atoms 5 --preset paper --alpha {alpha}")),
            format!("--alpha must be between 0 and 1, not {alpha}")
        );
    }
}

#[test]
fn batch_size_out_of_range() {
    for size in ["0", "-2"] {
        assert_eq!(
            fit_with(&format!("--atoms 5 --schedule batch --batch-size {size}")),
            format!("--batch-size must be at least 1, not {size}")
        );
    }
}

#[test]
fn batch_larger_than_the_data() {
    assert_snapshot!(
        fit_with("--atoms 5 --preset msbdl-1 --batch-size 41"),
        @"--batch-size must be at most the number of samples, 40, not 41"
    );
}

#[test]
fn batch_size_without_a_schedule_that_uses_it() {
    assert_snapshot!(
        fit_with("--atoms 5 --batch-size 20"),
        @"--batch-size must be used with the schedules 'incremental' and 'batch', not given with 'full'"
    );
}

#[test]
fn no_iterations() {
    assert_snapshot!(fit_with("--atoms 5 --max-iter 0"), @"--max-iter must be at least 1, not 0");
}

#[test]
fn negative_seed() {
    assert_snapshot!(fit_with("--atoms 5 --seed -1"), @"--seed must be at least 0, not -1");
}

#[test]
fn too_many_threads() {
    assert_snapshot!(
        fit_with("--atoms 5 --threads 100000"),
        @"--threads must be at most 1024, not 100000"
    );
}
