//! Shows everything on bundled data: fits, codes, and says what came of it.

use std::io::{BufReader, Cursor};
use std::path::Path;

use msbdl::score::ranked;
use msbdl::{Config, Data, Labels, Prediction, TaskConfig};
use ndarray::{Array2, s};
use npyz::npz::NpzArchive;

use crate::args::Demo;
use crate::fail::{Fail, Result};
use crate::show::{self, Report};
use crate::{encode, fit, progress, write};

const DIGITS: &[u8] = include_bytes!("../data/mfeat.npz");
const VIEWS: [&str; 3] = ["fou", "kar", "zer"];
/// Half of the digits and 40 atoms take one core about five seconds.
const EVERY: usize = 2;
const ATOMS: usize = 40;
type Views = Vec<(String, Array2<f64>)>;
const NUMERALS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// One view of every fifth digit is hidden.
const HIDDEN: usize = 5;

const INTRODUCTION: &str = "\
The data: 1,000 handwritten digits (UCI Multiple Features, CC BY 4.0), measured in three ways:
  fou  76 Fourier coefficients of the shape
  kar  64 Karhunen-Loeve coefficients of the image
  zer  47 Zernike moments of the image
To show that this is allowed, one of the three is hidden in every fifth digit, and the label
(which numeral it is) in every third.

The fit: one dictionary of 40 atoms for each of the three; a digit uses the same few atoms in all
of them. Noise and the number of atoms per digit are found from the data. This takes a
few seconds.
";

pub fn run(args: &Demo) -> Result<()> {
    let folder = &args.out;
    write::check_folder(folder)?;
    let (views, labels) = digits()?;
    show::print(INTRODUCTION)?;

    let data = Data::new(views.clone(), true).map_err(Fail::run)?;
    let config = Config::new(ATOMS);
    let given: Vec<Option<u8>> =
        labels.iter().enumerate().map(|(row, label)| shown(row).then_some(*label)).collect();
    let given = Labels::classes(&given).map_err(Fail::run)?;
    let task = Some((&given, &TaskConfig::default()));
    let (model, took) = progress::fit(&data, task, &config, false).map_err(Fail::run)?;
    let codes = model.encode(views.clone()).map_err(Fail::run)?;
    let told = model.predict(views.clone()).map_err(Fail::run)?;

    write::make_folder(folder)?;
    for (name, values) in &views {
        write::npy(&folder.join(format!("{name}.npy")), values)?.place()?;
    }
    let model_file = folder.join("model.safetensors");
    fit::save(&model, &model_file)?;
    encode::save(&codes, None, &folder.join("codes.npz"))?;

    let report = Report::new(&model, &model_file, Some(took));
    show::print(&format!("\n{}", report.text()))?;
    show::print(&verdict(&told, &labels))?;
    show::print(&next_steps(folder))
}

/// The views, one of them hidden in every fifth digit, and which digit each row is.
fn digits() -> Result<(Views, Vec<u8>)> {
    let mut views = Vec::new();
    for (index, name) in VIEWS.into_iter().enumerate() {
        let (shape, values) = array::<f32>(name)?;
        let [rows, columns] = shape[..] else {
            return Err(Fail::run(format!("bundled array '{name}' is no matrix")));
        };
        let values = values.into_iter().map(f64::from).collect();
        let all = Array2::from_shape_vec((rows, columns), values).map_err(Fail::run)?;
        let mut view = all.slice(s![..;EVERY, ..]).to_owned();
        for (row, mut values) in view.rows_mut().into_iter().enumerate() {
            if hidden(row) == Some(index) {
                values.fill(f64::NAN);
            }
        }
        views.push((name.to_owned(), view));
    }
    let labels = array::<u8>("y")?.1.into_iter().step_by(EVERY);
    Ok((views, labels.collect()))
}

/// Whether the fit is told which numeral a digit shows.
fn shown(row: usize) -> bool {
    row % 3 != 2
}

/// Which view of a digit is hidden; each in its turn.
fn hidden(row: usize) -> Option<usize> {
    (row % HIDDEN == HIDDEN - 1).then_some(row / HIDDEN % VIEWS.len())
}

fn array<T: npyz::Deserialize>(name: &str) -> Result<(Vec<usize>, Vec<T>)> {
    let mut archive = NpzArchive::new(BufReader::new(Cursor::new(DIGITS))).map_err(Fail::run)?;
    let entry = archive.by_name(name).map_err(Fail::run)?;
    let entry = entry.ok_or_else(|| Fail::run(format!("no bundled array '{name}'")))?;
    let shape = entry.shape().iter().map(|&size| size as usize).collect();
    Ok((shape, entry.into_vec().map_err(Fail::run)?))
}

/// Says how many of the digits whose label was not shown are named right.
fn verdict(told: &Prediction, labels: &[u8]) -> String {
    let named: Vec<&str> = labels.iter().map(|&label| NUMERALS[usize::from(label)]).collect();
    let share = |probability: &Array2<f64>, wanted: &dyn Fn(usize) -> bool| {
        let rows = (0..labels.len()).filter(|&row| !shown(row) && wanted(row));
        let rows: Vec<usize> = rows.filter(|&row| !probability[[row, 0]].is_nan()).collect();
        let right = |row: &&usize| told.names[ranked(probability.row(**row))[0]] == named[**row];
        let right = rows.iter().filter(right).count();
        format!("{:.1} %", 100.0 * right as f64 / rows.len().max(1) as f64)
    };
    let views = told
        .votes
        .iter()
        .map(|vote| format!("  {:24} {:>7}\n", vote.modality, share(&vote.probability, &|_| true)));
    format!(
        "\nThe labels: of two digits in three the fit was told which numeral they show. The others it\n\
         names right, from each view (coded with the help of the other two) and from all, in\n\
         {}  {:24} {:>7}\n  {:24} {:>7}\n",
        views.collect::<String>(),
        "all together",
        share(&told.probability, &|row| hidden(row).is_none()),
        "one of the views hidden",
        share(&told.probability, &|row| hidden(row).is_some()),
    )
}

fn next_steps(folder: &Path) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    format!(
        "\nWritten to {}: the views (fou.npy, kar.npy, zer.npy), model.safetensors, codes.npz\n\n\
         Try next:\n  \
         msbdl info {model}\n  \
         msbdl predict --model {model} --modality fou={fou} --modality kar={kar} --out digits.csv\n  \
         msbdl encode --model {model} --modality fou={fou} --modality kar={kar} --out codes.npz\n  \
         msbdl fit --modality fou={fou} --modality kar={kar} --atoms 30 --out two-views.safetensors\n  \
         msbdl fit --help\n",
        folder.display(),
        model = at("model.safetensors"),
        kar = at("kar.npy"),
        fou = at("fou.npy"),
    )
}
