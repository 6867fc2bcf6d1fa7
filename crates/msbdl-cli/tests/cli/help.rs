//! Checks that the help says what each command does, and that usage mistakes take one line.

use insta::assert_snapshot;

use crate::folder::Folder;

#[test]
fn every_command_explains_itself() {
    let folder = Folder::empty();
    assert_snapshot!("help", folder.ok("--help"));
    for command in ["demo", "fit", "encode", "predict", "score", "info", "synth", "recovery"] {
        assert_snapshot!(format!("help_{command}"), folder.ok(&format!("{command} --help")));
    }
}

#[test]
fn the_short_help_fits_on_a_page() {
    let folder = Folder::empty();
    for command in ["demo", "fit", "encode", "predict", "score", "info", "synth", "recovery"] {
        let lines = folder.ok(&format!("{command} -h")).lines().count();
        assert!(lines <= 35, "{command} -h has {lines} lines");
    }
}

#[test]
fn the_version_is_told() {
    let version = Folder::empty().ok("--version");
    assert_eq!(version, concat!("msbdl ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn without_a_command_two_are_proposed() {
    assert_snapshot!(
        Folder::new().refused(""),
        @"which command? try 'msbdl demo', or see 'msbdl --help'"
    );
}

#[test]
fn an_unknown_command_is_named() {
    assert_snapshot!(
        Folder::new().refused("fid --out x"),
        @"unrecognized subcommand 'fid'; tip: a similar subcommand exists: 'fit'; see 'msbdl --help'"
    );
}

#[test]
fn an_unknown_option_is_named() {
    assert_snapshot!(
        Folder::new().refused("fit --modalty a=a.npy"),
        @"unexpected argument '--modalty' found; tip: a similar argument exists: '--modality'; see 'msbdl fit --help'"
    );
}

#[test]
fn missing_options_are_named() {
    assert_snapshot!(
        Folder::new().refused("fit --modality a=a.npy"),
        @"the following required arguments were not provided: --out <FILE>, --atoms <M|NAME=M>; see 'msbdl fit --help'"
    );
}

#[test]
fn an_unknown_choice_lists_the_known_ones() {
    assert_snapshot!(
        Folder::new().refused("fit --modality a=a.npy --atoms 5 --out m.safetensors --preset slow"),
        @"invalid value 'slow' for '--preset <PRESET>' [possible values: auto, paper, msbdl-1, msbdl-2, msbdl-3, msbdl-4]; see 'msbdl fit --help'"
    );
}
