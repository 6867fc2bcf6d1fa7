//! Shows every error of the library: what is wrong, and where, in one line.

use msbdl::{Config, Data, Error, Model, PerModality, Preset, Schedule, Silent, fit};
use ndarray::{Array2, array};

fn good() -> Array2<f64> {
    array![[1.0, 2.0], [3.0, -4.0], [5.0, 0.5], [-2.0, 1.0]]
}

fn with(row: usize, column: usize, value: f64) -> Array2<f64> {
    let mut y = good();
    y[[row, column]] = value;
    y
}

fn without_rows(rows: &[usize]) -> Array2<f64> {
    let mut y = good();
    rows.iter().for_each(|&row| y.row_mut(row).fill(f64::NAN));
    y
}

fn data_error(named: Vec<(&str, Array2<f64>)>) -> String {
    let named = named.into_iter().map(|(name, y)| (name.to_owned(), y)).collect();
    one_line(Data::new(named, true).unwrap_err())
}

fn one_line(error: Error) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn data() {
    let nan = f64::NAN;
    let cases = [
        (vec![], "no modality was given"),
        (vec![("a", good()), ("a", good())], "modality 'a' was given twice"),
        (vec![("a", Array2::zeros((0, 2)))], "modality 'a' has no samples"),
        (vec![("a", Array2::zeros((2, 0)))], "modality 'a' has no features"),
        (
            vec![("a", good()), ("b", Array2::ones((3, 2)))],
            "modality 'b' has 3 samples, but modality 'a' has 4",
        ),
        (
            vec![("a", with(2, 1, f64::INFINITY))],
            "modality 'a', row 2, column 1: the value is infinite",
        ),
        (
            vec![("a", with(3, 0, nan))],
            "modality 'a', row 3: 1 of 2 values are missing; \
             a row must be complete or missing as a whole",
        ),
        (
            vec![("a", Array2::from_elem((4, 2), nan)), ("b", good())],
            "modality 'a' is missing in every sample",
        ),
        (
            vec![("a", Array2::zeros((4, 2)))],
            "modality 'a' is nought in every sample: there is nothing to learn from",
        ),
        (
            vec![("a", Array2::from_elem((4, 2), 0.1))],
            "modality 'a' is the same in every sample: there is nothing to learn from",
        ),
        (
            vec![("a", good() * 1e200)],
            "modality 'a' has values around 5e200: their squares cannot be represented; \
             change its unit",
        ),
        (
            vec![("a", without_rows(&[0, 2])), ("b", without_rows(&[1, 2]))],
            "row 2: every modality is missing",
        ),
    ];
    for (named, expected) in cases {
        assert_eq!(data_error(named), expected);
    }
}

fn setting_error(change: impl Fn(&mut Config)) -> String {
    let named = vec![("a".to_owned(), good()), ("b".to_owned(), good() * 3.0)];
    let data = Data::new(named, true).unwrap();
    let mut config = Config::new(2);
    change(&mut config);
    one_line(fit(&data, &config, &mut Silent).unwrap_err())
}

fn by_name<T: Copy>(pairs: &[(&str, T)]) -> PerModality<T> {
    PerModality::ByName(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
}

#[test]
fn settings() {
    type Change = Box<dyn Fn(&mut Config)>;
    let paper = |change: fn(&mut Config)| -> Change {
        Box::new(move |config| {
            config.preset = Preset::Paper;
            change(config);
        })
    };
    let huge = format!("sigma0 must be comparable with modality 'a', not {}", 1e200);
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|c| c.n_atoms = PerModality::Same(0)), "atoms must be at least 1, not 0"),
        (
            Box::new(|c| c.n_atoms = PerModality::Same(5)),
            "atoms: 5 atoms cannot be started from the 4 samples of modality 'a' that are not nought",
        ),
        (
            Box::new(|c| c.n_atoms = by_name(&[("a", 2), ("x", 2)])),
            "atoms: unknown modality 'x'; the modalities are a, b",
        ),
        (
            Box::new(|c| c.n_atoms = by_name(&[("a", 2)])),
            "atoms must be given for every modality, not nothing for 'b'",
        ),
        (
            Box::new(|c| c.n_atoms = by_name(&[("a", 2), ("a", 3)])),
            "atoms must be given once a modality, not 'a' twice",
        ),
        (
            Box::new(|c| c.n_atoms = by_name(&[("a", 2), ("b", 3)])),
            "atoms must be the same number in every modality (one-to-one prior), not 2 and 3",
        ),
        (
            Box::new(|c| c.batch_size = Some(2)),
            "batch-size must be used with the schedules 'incremental' and 'batch', \
             not given with 'full'",
        ),
        (
            Box::new(|c| (c.schedule, c.batch_size) = (Some(Schedule::Batch), Some(0))),
            "batch-size must be at least 1, not 0",
        ),
        (
            Box::new(|c| (c.preset, c.batch_size) = (Preset::Msbdl1, Some(9))),
            "batch-size must be at most the number of samples, 4, not 9",
        ),
        (
            Box::new(|c| c.alpha = Some(0.9)),
            "alpha must be left to the data, or used with the preset 'paper', not given",
        ),
        (paper(|c| c.alpha = Some(1.0)), "alpha must be between 0 and 1, not 1"),
        (paper(|c| c.alpha = Some(-0.5)), "alpha must be positive, not -0.5"),
        (paper(|c| c.sigma_inf = Some(0.0)), "sigma-inf must be positive, not 0"),
        (paper(|c| c.sigma0 = Some(PerModality::Same(-1.0))), "sigma0 must be positive, not -1"),
        (
            paper(|c| c.sigma0 = Some(by_name(&[("x", 1.0)]))),
            "sigma0: unknown modality 'x'; the modalities are a, b",
        ),
        (paper(|c| c.sigma0 = Some(PerModality::Same(1e200))), &huge),
        (Box::new(|c| c.max_iter = Some(0)), "max-iter must be at least 1, not 0"),
    ];
    for (change, expected) in cases {
        assert_eq!(setting_error(change), expected);
    }
}

fn model() -> Model {
    let named = vec![("a".to_owned(), good()), ("b".to_owned(), good() * 3.0)];
    let config = Config { max_iter: Some(3), ..Config::new(2) };
    fit(&Data::new(named, true).unwrap(), &config, &mut Silent).unwrap()
}

#[test]
fn encoding() {
    let cases = [
        (vec![], "no modality was given"),
        (vec![("x", good())], "encode: unknown modality 'x'; the modalities are a, b"),
        (
            vec![("a", Array2::ones((4, 3)))],
            "modality 'a' has 3 features, but the model was learnt on 2",
        ),
        (vec![("a", without_rows(&[1]))], "row 1: every modality is missing"),
    ];
    let model = model();
    for (named, expected) in cases {
        let named = named.into_iter().map(|(name, y)| (name.to_owned(), y)).collect();
        assert_eq!(one_line(model.encode(named).unwrap_err()), expected);
    }
}

/// Saves a model, lets `spoil` change the bytes, and tells what reading them says.
fn file_error(spoil: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    model().save(&path).unwrap();
    std::fs::write(&path, spoil(std::fs::read(&path).unwrap())).unwrap();
    let text = one_line(Model::load(&path).unwrap_err());
    let (file, problem) = text.split_once("m.safetensors: ").unwrap();
    assert!(!file.is_empty());
    problem.to_owned()
}

/// Replaces text in the header; the length must stay the same.
fn swap(from: &str, to: &str) -> impl Fn(Vec<u8>) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let (from, to) = (from.as_bytes().to_vec(), to.as_bytes().to_vec());
    move |mut bytes| {
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(&to);
        bytes
    }
}

#[test]
fn model_files() {
    let cut = |keep: usize| move |bytes: Vec<u8>| bytes[..keep.min(bytes.len() - 1)].to_vec();
    for problem in [file_error(cut(5)), file_error(cut(200)), file_error(cut(usize::MAX))] {
        assert!(problem.starts_with("not a complete model file ("), "{problem}");
    }
    let other = file_error(|_| b"PK not a model at all, but long enough to be read".to_vec());
    assert!(other.starts_with("not a complete model file ("), "{other}");
    let cases = [
        (
            file_error(swap("\"msbdl\"", "\"other\"")),
            "a safetensors file, but not a model: it has no entry 'msbdl'",
        ),
        (
            file_error(swap("format_version\\\":1", "format_version\\\":7")),
            "format version 7; this program reads versions up to 1",
        ),
        (file_error(swap("dictionary.a", "dictionary.c")), "tensor 'dictionary.a' is missing"),
        (
            file_error(swap("n_features\\\":2", "n_features\\\":3")),
            "tensor 'dictionary.a' is F64 [2, 2] instead of F64 [3, 2]",
        ),
        (
            file_error(swap("n_atoms\\\":2", "n_atoms\\\":1")),
            "tensor 'dictionary.a' is F64 [2, 2] instead of F64 [2, 1]",
        ),
        (
            file_error(swap("name\\\":\\\"b", "name\\\":\\\"a")),
            "modality 'a' is out of order or there twice",
        ),
        (
            file_error(|mut bytes| {
                let last = bytes.len() - 8;
                bytes[last..].copy_from_slice(&f64::NAN.to_le_bytes());
                bytes
            }),
            "holds values that are not finite",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.ends_with(expected), "{found}");
    }
    let missing = Model::load(std::path::Path::new("no/such/model")).unwrap_err();
    assert!(one_line(missing).starts_with("no/such/model: "));
}

#[test]
fn saving() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no").join("m.safetensors");
    assert!(matches!(model().save(&nowhere), Err(Error::Io { .. })));
    let path = folder.path().join("m.safetensors");
    let model = model();
    model.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(again.modalities[1].dictionary, model.modalities[1].dictionary);
    assert_eq!(again.modalities[1].mean, model.modalities[1].mean);
    assert_eq!(again.modalities[1].sigma2, model.modalities[1].sigma2);
    assert_eq!((again.seed, again.stop_reason), (model.seed, model.stop_reason));
    assert_eq!(again.summary, model.summary);
    assert_eq!(again.history.len(), model.history.len());
    let first = std::fs::read(&path).unwrap();
    again.save(&path).unwrap();
    assert_eq!(first, std::fs::read(&path).unwrap(), "saving twice gives the same bytes");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[test]
fn recipes() {
    use msbdl::synth::Recipe;
    let paper = || Recipe::paper(&[30.0, 10.0], 0);
    let cases = [
        (Recipe { n_samples: 0, ..paper() }, "samples must be at least 1, not 0"),
        (
            Recipe { sparsity: 51, ..paper() },
            "sparsity must be at most the number of atoms, not 51",
        ),
        (Recipe { snr: vec![], ..paper() }, "snr must be one finite number a modality, not []"),
        (
            Recipe { missing: vec![0.6, 0.6], ..paper() },
            "missing must be shares of several modalities that add up to at most 1, not [0.6, 0.6]",
        ),
    ];
    for (recipe, expected) in cases {
        assert_eq!(one_line(recipe.draw().unwrap_err()), expected);
    }
}
