//! Runs the demo, which needs no file, and what it proposes to try next.

use insta::assert_snapshot;

use crate::folder::Folder;

#[test]
fn demo_tells_its_story() {
    let folder = Folder::empty();
    let story = folder.ok("demo");
    let (introduction, _) = story.split_once("\nmodality").expect("a table of the modalities");
    assert_snapshot!("demo_introduction", introduction);
    for file in ["model.safetensors", "codes.npz", "fou.npy", "kar.npy", "zer.npy"] {
        assert!(folder.path(&format!("msbdl-demo/{file}")).is_file(), "{file}");
    }

    // What it proposes to try next must work.
    let (_, proposed) = story.split_once("Try next:\n").expect("what to try next");
    for line in proposed.lines().filter(|line| !line.contains("msbdl fit --modality")) {
        folder.ok(line.trim().strip_prefix("msbdl ").expect("a command of this program"));
    }
}
