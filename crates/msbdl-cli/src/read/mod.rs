//! Reads numeric tables from npy, npz, csv and tsv files.

mod csv;
mod ids;
mod labels;
mod lines;
mod npy;
mod npz;
mod rows;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use ndarray::Array2;

pub use ids::matched;
pub use labels::{Given, Samples, labels};

/// One modality as a file holds it: rows are samples, NaN is a missing value.
#[derive(Debug)]
pub struct Table {
    pub values: Array2<f64>,
    /// One for each row, none twice.
    pub ids: Option<Vec<String>>,
    pub columns: Option<Vec<String>>,
}

/// What is wrong with the user's input, in one line.
#[derive(Debug)]
pub struct BadInput(String);

impl BadInput {
    fn new(subject: &str, problem: &str) -> Self {
        // A file name may hold a line break, and the promise is one line.
        Self(format!("{subject}: {problem}").replace(['\n', '\r'], " "))
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Reads `file.npy`, `file.npz`, `file.npz:array`, `file.csv` or `file.tsv`.
///
/// With `with_ids` the first column of a csv or tsv file names the samples.
pub fn table(path_spec: &str, with_ids: bool) -> anyhow::Result<Table> {
    let (path, array) = split(path_spec);
    let bad = |problem: String| BadInput::new(path, &problem);
    let read = || match (extension(path).as_str(), with_ids) {
        ("csv", _) => csv::read(open(path)?, b',', with_ids),
        ("tsv", _) => csv::read(open(path)?, b'\t', with_ids),
        ("npy" | "npz", true) => Err("sample ids need a csv or tsv file".to_owned()),
        ("npy", false) => npy::read(open(path)?).map(unnamed),
        ("npz", false) => npz::read(open(path)?, array).map(unnamed),
        _ if Path::new(path).is_dir() => Err("is a directory".to_owned()),
        _ => Err("unknown kind of file; .npy, .npz, .csv and .tsv are supported".to_owned()),
    };
    Ok(read().map_err(bad)?)
}

fn unnamed(values: Array2<f64>) -> Table {
    Table { values, ids: None, columns: None }
}

/// Separates the path from the name of an array inside it.
///
/// Paths and array names may both hold ':', so what exists on disk decides.
fn split(spec: &str) -> (&str, Option<&str>) {
    let lower = spec.to_ascii_lowercase();
    let cut = |(at, _)| (&spec[..at + 4], Some(&spec[at + 5..]));
    let exists = |path: &str| Path::new(path).exists();
    if exists(spec) {
        return (spec, None);
    }
    let mut cuts = lower.match_indices(".npz:").map(cut);
    if let Some(found) = cuts.clone().find(|(path, _)| exists(path)) {
        return found;
    }
    let known = ["npy", "npz", "csv", "tsv"].contains(&extension(spec).as_str());
    match cuts.next() {
        Some(first) if !known => first,
        _ => (spec, None),
    }
}

fn extension(path: &str) -> String {
    let extension = Path::new(path).extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

fn open(path: &str) -> Result<File, String> {
    let file = File::open(path).map_err(|error| io_problem(&error))?;
    // Unix opens directories without complaint and fails only at the first read.
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err("is a directory".to_owned()),
        Ok(_) => Ok(file),
        Err(error) => Err(io_problem(&error)),
    }
}

fn io_problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Quotes text from a file so that it stays short and in one line.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ndarray::array;
    use npyz::WriterBuilder;
    use npyz::npz::NpzWriter;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> String {
            self.0.path().join(name).to_str().unwrap().to_owned()
        }

        fn text(&self, name: &str, content: &str) -> String {
            fs::write(self.path(name), content).unwrap();
            self.path(name)
        }

        /// An archive with one 1 x 1 array of each name.
        fn archive(&self, name: &str, arrays: &[(&str, f64)]) -> String {
            let mut writer = NpzWriter::create(self.path(name)).unwrap();
            for &(array, value) in arrays {
                let entry = writer.array::<f64>(array, Default::default()).unwrap();
                let mut array = entry.default_dtype().shape(&[1, 1]).begin_nd().unwrap();
                array.push(&value).unwrap();
                array.finish().unwrap();
            }
            self.path(name)
        }
    }

    /// The message after the name of the file, which must come first.
    fn problem(spec: &str, path: &str) -> String {
        let error = table(spec, false).unwrap_err();
        let bad = error.downcast_ref::<BadInput>().unwrap().to_string();
        assert_eq!(bad.lines().count(), 1);
        bad.strip_prefix(&format!("{path}: ")).unwrap().to_owned()
    }

    #[test]
    fn the_extension_decides_whatever_its_case() {
        let folder = Folder::new();
        let comma = folder.text("x.CSV", "1,2\n");
        let tab = folder.text("x.Tsv", "3\t4\n");
        let npz = folder.archive("x.NPZ", &[("a", 5.0)]);
        let npy = folder.path("x.Npy");
        npyz::to_file_1d(&npy, [7_i32]).unwrap();
        assert_eq!(table(&comma, false).unwrap().values, array![[1.0, 2.0]]);
        assert_eq!(table(&tab, false).unwrap().values, array![[3.0, 4.0]]);
        assert_eq!(table(&npz, false).unwrap().values, array![[5.0]]);
        assert!(problem(&npy, &npy).starts_with("the array has shape (1,)"));
    }

    #[test]
    fn an_array_is_named_after_a_colon() {
        let folder = Folder::new();
        let arrays = [("a", 1.0), ("b:c", 2.0), ("d.csv", 3.0)];
        let path = folder.archive("x.npz", &arrays);
        for (name, value) in arrays {
            let read = table(&format!("{path}:{name}"), false).unwrap();
            assert_eq!(read.values, array![[value]]);
        }
        assert!(problem(&format!("{path}:z"), &path).starts_with("no array 'z'"));
    }

    #[test]
    fn a_path_may_hold_a_colon() {
        let folder = Folder::new();
        let archive = folder.archive("run.npz:2.npz", &[("a", 1.0), ("b", 2.0)]);
        let text = folder.text("run.npz:3.csv", "3\n");
        let missing = folder.path("run.npz:4.csv");
        let named = table(&format!("{archive}:b"), false).unwrap();
        assert_eq!(named.values, array![[2.0]]);
        assert_eq!(table(&text, false).unwrap().values, array![[3.0]]);
        assert_eq!(problem(&missing, &missing), "no such file");
    }

    #[test]
    fn a_file_goes_before_an_array_of_the_same_spec() {
        let folder = Folder::new();
        folder.archive("x.npz", &[("y.csv", 1.0)]);
        let text = folder.text("x.npz:y.csv", "2\n");
        assert_eq!(table(&text, false).unwrap().values, array![[2.0]]);
    }

    #[test]
    fn missing_files_are_named() {
        for name in ["x.npy", "x.npz", "x.csv", "x.tsv"] {
            assert_eq!(problem(name, name), "no such file");
        }
        assert_eq!(problem("x.npz:a", "x.npz"), "no such file");
    }

    #[test]
    fn directories_are_named() {
        let folder = Folder::new();
        for name in ["x.csv", "x.npy", "x.npz", "x"] {
            let path = folder.path(name);
            fs::create_dir(&path).unwrap();
            assert_eq!(problem(&path, &path), "is a directory");
        }
    }

    #[test]
    fn forbidden_files_are_named() {
        // A file that root may not read is hard to make, so only the wording is tested.
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(io_problem(&error), "permission denied");
    }

    #[test]
    fn other_extensions_list_the_supported_ones() {
        for spec in ["x.h5", "x", "x.npy:a"] {
            assert_eq!(
                problem(spec, spec),
                "unknown kind of file; .npy, .npz, .csv and .tsv are supported"
            );
        }
    }

    #[test]
    fn ids_need_text() {
        for spec in ["x.npy", "x.npz"] {
            let error = table(spec, true).unwrap_err().to_string();
            assert_eq!(error, format!("{spec}: sample ids need a csv or tsv file"));
        }
    }

    #[test]
    fn a_line_break_in_a_name_does_not_break_the_message() {
        assert_eq!(problem("a\nb.csv", "a b.csv"), "no such file");
    }

    #[test]
    fn long_cells_are_cut() {
        let folder = Folder::new();
        let path = folder.text("x.csv", &format!("1,2\n3,{}\n", "é".repeat(41)));
        let expected = format!("line 2, column 2: \"{}\"... is not a number", "é".repeat(40));
        assert_eq!(problem(&path, &path), expected);
    }
}
