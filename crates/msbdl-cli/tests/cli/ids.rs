//! Samples are matched by the ids in the files' first columns.

use npyz::npz::NpzArchive;

use crate::folder::Folder;

#[test]
fn samples_are_matched_by_id() {
    let folder = Folder::empty();
    let row = |i: u32, n: u32| {
        let cells = (0..n)
            .map(|j| format!(",{}", f64::from((i * 7 + j * 13) % 11) / 10.0 + f64::from(i % 3)));
        format!("s{i}{}\n", cells.collect::<String>())
    };
    let x: String = (0..40).map(|i| row(i, 4)).collect();
    let y: String = (0..45).rev().filter(|i| i % 5 != 0).map(|i| row(i, 3)).collect();
    folder.file("x.csv", format!("id,a,b,c,d\n{x}"));
    folder.file("y.tsv", y.replace(',', "\t"));
    let files = "--modality x=x.csv --modality y=y.tsv --ids";
    let output = folder.run(&format!("fit {files} --atoms 4 --max-iter 10 --out m.safetensors"));
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "44 samples matched by id: 4 lack 'x', 8 lack 'y'\n");

    folder.ok(&format!("encode --model m.safetensors {files} --out c.npz"));
    let mut archive = NpzArchive::open(folder.path("c.npz")).unwrap();
    let entry = archive.by_name("ids").unwrap().unwrap();
    let ids: Vec<String> = entry.into_vec().unwrap();
    let expected = (0..40).chain((40..45).rev().filter(|i| i % 5 != 0)).map(|i| format!("s{i}"));
    assert!(ids.into_iter().eq(expected));
    assert_eq!(folder.array("c.npz", "gamma").nrows(), 44);
}
