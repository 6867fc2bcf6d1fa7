//! Writes and reads folders of synthetic data with their truth.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use msbdl::synth::Truth;
use msbdl::{Branches, Groups, Place};
use ndarray::{Array1, Array2};
use npyz::npz::NpzArchive;
use serde::Serialize;

use crate::fail::{Fail, Result};
use crate::read;
use crate::write::{self, Ready, Values};

const TRUTH: &str = "truth.npz";
const RECIPE: &str = "recipe.json";
/// The branches of trees, in the form that `msbdl fit --groups` takes.
const GROUPS: &str = "groups.json";

/// The name of the modality with that index.
pub fn name(index: usize) -> String {
    format!("mod{}", index + 1)
}

/// Checks that the folder is new, empty or an earlier one.
pub fn check_folder(folder: &Path) -> Result<()> {
    write::check_folder(folder)?;
    let names = listed(folder)?;
    let ours = names.iter().any(|name| name == RECIPE);
    match names.iter().find(|name| !(ours && is_own(name))) {
        Some(other) => Err(Fail::input(format!(
            "--out: {} holds other files already, such as {}",
            folder.display(),
            other.display()
        ))),
        None => Ok(()),
    }
}

fn listed(folder: &Path) -> Result<Vec<OsString>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect();
    let list: std::io::Result<Vec<_>> = list();
    list.map_err(|error| Fail::input(format!("--out: {}: {error}", folder.display())))
}

fn is_own(name: &OsString) -> bool {
    name == TRUTH || name == RECIPE || name == GROUPS || is_data(name)
}

fn is_data(name: &OsString) -> bool {
    let text = name.to_string_lossy();
    let number = text.strip_prefix("mod").and_then(|rest| rest.strip_suffix(".npy"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Writes a truth into a folder that [`check_folder`] has passed.
pub fn save(folder: &Path, truth: &Truth, recipe: &impl Serialize) -> Result<()> {
    let names: Vec<String> = (0..truth.data.len()).map(name).collect();
    let sigma2 = Array1::from_vec(truth.sigma2.clone());
    let mut arrays = vec![("sigma2".to_owned(), Values::Vector(&sigma2))];
    let known = truth.dictionaries.iter().zip(&truth.codes);
    for (name, (dictionary, codes)) in names.iter().zip(known) {
        arrays.push((format!("dictionary.{name}"), Values::Matrix(dictionary)));
        arrays.push((format!("codes.{name}"), Values::Matrix(codes)));
    }
    let recipe = serde_json::to_vec_pretty(recipe).map_err(Fail::run)?;

    write::make_folder(folder)?;
    let (recipe_path, truth_path) = (folder.join(RECIPE), folder.join(TRUTH));
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(format!("{name}.npy"))).collect();
    // The recipe goes first: it marks the folder as one that may be written again.
    let mut ready = vec![
        write::beside(&recipe_path, |file| file.write_all(&recipe))?,
        write::npz(&truth_path, &arrays)?,
    ];
    let groups_path = folder.join(GROUPS);
    let is_tree = truth.dictionaries.iter().any(|d| d.ncols() != truth.branches.count());
    if is_tree {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let groups = serde_json::to_vec(&truth.branches.to_groups(&names)).map_err(Fail::run)?;
        ready.push(write::beside(&groups_path, |file| file.write_all(&groups))?);
    }
    for (path, data) in paths.iter().zip(&truth.data) {
        ready.push(write::npy(path, data)?);
    }
    ready.into_iter().try_for_each(Ready::place)?;
    // An earlier truth may have had more modalities, or branches.
    for stale in listed(folder)?.iter().filter(|stale| is_data(stale) || *stale == GROUPS) {
        let path = folder.join(stale);
        let own = paths.contains(&path) || (is_tree && path == groups_path);
        if !own {
            fs::remove_file(folder.join(stale)).map_err(Fail::run)?;
        }
    }
    Ok(())
}

/// What is known of one modality.
pub struct Known {
    pub name: String,
    pub dictionary: Array2<f64>,
    pub sigma2: f64,
}

/// Reads the branches of a truth with these modalities; one-to-one if it has none.
pub fn load_branches(folder: &Path, known: &[Known]) -> Result<Branches> {
    let path = folder.join(GROUPS);
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    let atoms: Vec<usize> = known.iter().map(|known| known.dictionary.ncols()).collect();
    let bad = |problem: String| Fail::input(format!("{}: {problem}", path.display()));
    let groups: Groups = match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let least = atoms.iter().copied().min().unwrap_or(0);
            let place = |k: usize| move |name: &&str| ((*name).to_owned(), vec![Place::Atom(k)]);
            (0..least).map(|k| names.iter().map(place(k)).collect()).collect()
        }
        Err(error) => return Err(bad(format!("cannot be read: {error}"))),
    };
    Branches::new(&groups, &names, &atoms).map_err(|error| bad(error.to_string()))
}

/// Reads dictionaries and noise.
pub fn load(folder: &Path) -> Result<Vec<Known>> {
    let sigma2 = variances(&folder.join(TRUTH))?;
    let known = sigma2.into_iter().enumerate().map(|(index, sigma2)| {
        let name = name(index);
        let dictionary = array(folder, &format!("dictionary.{name}"))?;
        Ok(Known { name, dictionary, sigma2 })
    });
    known.collect()
}

/// Reads everything.
pub fn load_all(folder: &Path) -> Result<Truth> {
    let known = load(folder)?;
    let mut truth = Truth {
        data: Vec::new(),
        dictionaries: Vec::new(),
        codes: Vec::new(),
        sigma2: Vec::new(),
        branches: load_branches(folder, &known)?,
    };
    for Known { name, dictionary, sigma2 } in known {
        let data = folder.join(format!("{name}.npy"));
        truth.data.push(read::table(&data.to_string_lossy(), false)?.values);
        truth.codes.push(array(folder, &format!("codes.{name}"))?);
        truth.dictionaries.push(dictionary);
        truth.sigma2.push(sigma2);
    }
    agree(folder, &truth)?;
    Ok(truth)
}

/// Checks that the shapes belong together: the folder may have been edited.
fn agree(folder: &Path, truth: &Truth) -> Result<()> {
    let samples = truth.codes.first().map_or(0, |codes| codes.nrows());
    for (index, data) in truth.data.iter().enumerate() {
        let (dictionary, codes) = (&truth.dictionaries[index], &truth.codes[index]);
        let expected = (samples, dictionary.nrows());
        if data.dim() != expected || codes.dim() != (samples, dictionary.ncols()) {
            return Err(Fail::input(format!(
                "{}: {}.npy and {TRUTH} do not belong together: their sizes differ",
                folder.display(),
                name(index)
            )));
        }
    }
    Ok(())
}

fn array(folder: &Path, name: &str) -> Result<Array2<f64>> {
    let path = folder.join(TRUTH);
    Ok(read::table(&format!("{}:{name}", path.to_string_lossy()), false)?.values)
}

fn variances(path: &Path) -> Result<Vec<f64>> {
    let shown = path.display();
    let bad = |problem: String| Fail::input(format!("{shown}: {problem}"));
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            bad("no such file; --truth takes a folder of 'msbdl synth'".into())
        }
        _ => bad(format!("cannot be read: {error}")),
    })?;
    let mut archive = NpzArchive::new(BufReader::new(file))
        .map_err(|error| bad(format!("not an npz archive, or truncated ({error})")))?;
    let entry =
        archive.by_name("sigma2").map_err(|error| bad(format!("array 'sigma2': {error}")))?;
    let entry = entry.ok_or_else(|| bad("no array 'sigma2' in the archive".into()))?;
    let values =
        entry.into_vec::<f64>().map_err(|error| bad(format!("array 'sigma2': {error}")))?;
    match values.is_empty() {
        true => Err(bad("array 'sigma2' is empty".into())),
        false => Ok(values),
    }
}
