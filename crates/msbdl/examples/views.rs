//! Compares trees with one-to-one on two views in a file: `views FILE.npz ROOT LEAVES ATOMS MAX SEED`.
//!
//! ROOT and LEAVES name arrays of floats, a row a sample; every fourth sample is held out. The
//! root view gets ATOMS atoms, the other up to MAX for each of them; one-to-one gets ATOMS in both
//! views, then as many in both as make the tree's total. A line a model: atoms, branches of several
//! leaves and how many of those are identified, log-evidence per held-out sample, seconds.

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use msbdl::{Config, Data, PerModality, PriorKind, Silent, fit};
use ndarray::{Array2, Axis, ShapeBuilder};
use npyz::npz::NpzArchive;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, root, leaves, atoms, most, seed] = words.as_slice() else {
        return Err("usage: views FILE.npz ROOT LEAVES ATOMS MAX SEED".into());
    };
    let (atoms, most, seed): (usize, usize, u64) = (atoms.parse()?, most.parse()?, seed.parse()?);
    let mut file = NpzArchive::new(BufReader::new(File::open(file)?))?;
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for name in [root, leaves] {
        let (shown, held) = split(&matrix(&mut file, name)?);
        train.push((name.clone(), shown));
        test.push((name.clone(), held));
    }
    let data = Data::new(train, true)?;
    let learn = |config: Config| -> Outcome<usize> {
        let started = Instant::now();
        let model = fit(&data, &Config { seed, threads: 1, ..config }, &mut Silent)?;
        let seconds = started.elapsed().as_secs_f64();
        let evidence = model.encode(test.clone())?.log_evidence.mean().unwrap_or(f64::NAN);
        let sizes: Vec<usize> = model.modalities.iter().map(|x| x.dictionary.ncols()).collect();
        let several = (0..model.branches.count())
            .filter(|&k| (0..sizes.len()).any(|j| model.branches.atoms(j, k).len() > 1));
        let (identified, other): (Vec<_>, Vec<_>) = several.partition(|&k| model.identified[k]);
        let (identified, several) = (identified.len(), identified.len() + other.len());
        println!(
            "{:?} {sizes:?} {identified} of {several}  {evidence:.2}  {seconds:.1} s",
            model.prior
        );
        Ok(sizes.iter().sum())
    };
    let mut total = 0;
    for prior in [PriorKind::AtomToSubspace, PriorKind::Tree] {
        total = learn(Config {
            n_atoms: PerModality::ByName(vec![(root.clone(), atoms)]),
            prior,
            root: Some(root.clone()),
            max_leaves: Some(most),
            ..Config::new(1)
        })?;
    }
    learn(Config::new(atoms))?;
    learn(Config::new(total.div_ceil(2)))?;
    Ok(())
}

fn matrix(file: &mut NpzArchive<BufReader<File>>, name: &str) -> Outcome<Array2<f64>> {
    let entry = file.by_name(name)?.ok_or_else(|| format!("no array '{name}'"))?;
    let [rows, columns] = entry.shape() else {
        return Err(format!("'{name}' has not two dimensions").into());
    };
    let shape = (*rows as usize, *columns as usize);
    let columns_first = entry.order() == npyz::Order::Fortran;
    let values = entry.into_vec::<f32>()?.into_iter().map(f64::from).collect();
    Ok(Array2::from_shape_vec(shape.set_f(columns_first), values)?)
}

/// Three samples to learn from for every one held out; features of unit variance in the former.
fn split(y: &Array2<f64>) -> (Array2<f64>, Array2<f64>) {
    let (held, shown): (Vec<usize>, Vec<usize>) = (0..y.nrows()).partition(|i| i % 4 == 0);
    let (shown, held) = (y.select(Axis(0), &shown), y.select(Axis(0), &held));
    let spread = shown.std_axis(Axis(0), 0.0).mapv(|x| if x > 0.0 { x } else { 1.0 });
    (shown / &spread, held / &spread)
}
