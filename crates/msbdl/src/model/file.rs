//! Writes and reads model files: safetensors, with one JSON entry for what is not a tensor.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use ndarray::{Array, Array1, Array2, Dimension};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::classifier_file::{self, ClassifierEntry};
use super::memory_file::{self, MemoryEntry};
use super::summary::Summary;
use super::{ModalityModel, Model, StopReason};
use crate::input::branches::{Branches, Groups};
use crate::input::config::Preset;
use crate::input::prior::{PriorKind, Slab};
use crate::support::error::{Error, Result};
use crate::support::observe::Facts;

/// Raised when older readers could no longer understand a file.
const FORMAT_VERSION: u64 = 1;
/// The metadata entry that holds the JSON.
const ENTRY: &str = "msbdl";

/// What was read, or what is wrong with it.
pub(super) type Read<T> = std::result::Result<T, String>;

#[derive(Serialize, Deserialize)]
struct Metadata {
    format_version: u64,
    modalities: Vec<ModalityEntry>,
    prior: PriorKind,
    /// The branches of a tree prior; the modality of the roots comes with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    groups: Groups,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    identified: Vec<bool>,
    preset: Preset,
    seed: u64,
    converged: bool,
    stop_reason: StopReason,
    slab: Slab,
    summary: Summary,
    history: Vec<Facts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classifier: Option<ClassifierEntry>,
    /// Files of before it was kept lack it: they are read, but learning cannot go on from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryEntry>,
}

#[derive(Serialize, Deserialize)]
struct ModalityEntry {
    name: String,
    n_features: usize,
    n_atoms: usize,
    scale: f64,
    sigma2: f64,
}

impl Model {
    /// Writes the model beside `path` and renames it into place when it is complete.
    pub fn save(&self, path: &Path) -> Result<()> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let bytes = self.to_bytes().map_err(|problem| problem_with(path, problem))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::Builder::new()
            .prefix(".msbdl-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(io)?;
        file.write_all(&bytes).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        share_like_others(file.as_file()).map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Read<Vec<u8>> {
        let entry = |x: &ModalityModel| ModalityEntry {
            name: x.name.clone(),
            n_features: x.dictionary.nrows(),
            n_atoms: x.dictionary.ncols(),
            scale: x.scale,
            sigma2: x.sigma2,
        };
        let tree = self.prior != PriorKind::OneToOne;
        let metadata = Metadata {
            format_version: FORMAT_VERSION,
            modalities: self.modalities.iter().map(entry).collect(),
            prior: self.prior,
            root: tree.then(|| self.modalities[self.branches.root()].name.clone()),
            identified: if tree { self.identified.clone() } else { Vec::new() },
            groups: if tree { self.groups() } else { Groups::new() },
            preset: self.preset,
            seed: self.seed,
            converged: self.converged(),
            stop_reason: self.stop_reason,
            slab: self.slab,
            summary: self.summary.clone(),
            history: self.history.clone(),
            classifier: self.classifier.as_ref().map(ClassifierEntry::new),
            memory: self.memory.as_ref().map(MemoryEntry::new),
        };
        let json = serde_json::to_string(&metadata).map_err(|error| error.to_string())?;
        let mut tensors = Vec::new();
        for x in &self.modalities {
            tensors.push(Tensor::new(tensor("dictionary", &x.name), &x.dictionary));
            tensors.push(Tensor::new(tensor("mean", &x.name), &x.mean));
        }
        if let Some(classifier) = &self.classifier {
            tensors.extend(classifier_file::tensors(classifier, &self.modalities));
        }
        if let Some(memory) = &self.memory {
            tensors.extend(memory_file::tensors(memory, &self.modalities));
        }
        let views = tensors.iter().map(|tensor| {
            let view = TensorView::new(Dtype::F64, tensor.shape.clone(), &tensor.bytes);
            view.map(|view| (tensor.name.as_str(), view))
        });
        let views = views.collect::<std::result::Result<Vec<_>, _>>();
        let views = views.map_err(|error| error.to_string())?;
        let entries = HashMap::from([(ENTRY.to_owned(), json)]);
        safetensors::serialize(views, Some(entries)).map_err(|error| error.to_string())
    }

    /// Reads a model; says what is wrong with the file if it is not one.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Self::from_bytes(&bytes).map_err(|problem| problem_with(path, problem))
    }

    /// Reads the bytes of a file; says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Read<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes)
            .map_err(|error| format!("not a complete model file ({error})"))?;
        let json = header.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let json = json.ok_or("a safetensors file, but not a model: it has no entry 'msbdl'")?;
        let value: serde_json::Value =
            serde_json::from_str(json).map_err(|error| format!("entry 'msbdl': {error}"))?;
        match value.get("format_version").and_then(serde_json::Value::as_u64) {
            Some(version) if version > FORMAT_VERSION => {
                return Err(format!(
                    "format version {version}; this program reads versions up to {FORMAT_VERSION}"
                ));
            }
            Some(_) => {}
            None => return Err("entry 'msbdl' has no format version".into()),
        }
        let metadata: Metadata =
            serde_json::from_value(value).map_err(|error| format!("entry 'msbdl': {error}"))?;
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| format!("not a complete model file ({error})"))?;
        metadata.with_tensors(&tensors)
    }
}

impl Metadata {
    fn with_tensors(self, tensors: &SafeTensors) -> Read<Model> {
        if self.modalities.is_empty() {
            return Err("the model has no modality".into());
        }
        let n_atoms = self.modalities[0].n_atoms;
        let mut modalities: Vec<ModalityModel> = Vec::new();
        for entry in self.modalities {
            let (name, n, m) = (entry.name, entry.n_features, entry.n_atoms);
            if modalities.last().is_some_and(|last| last.name >= name) {
                return Err(format!("modality '{name}' is out of order or there twice"));
            }
            if m != n_atoms && self.prior == PriorKind::OneToOne {
                return Err(format!("modality '{name}' has {m} atoms, another one {n_atoms}"));
            }
            for (what, x) in [("scale", entry.scale), ("sigma2", entry.sigma2)] {
                if !(x.is_finite() && x > 0.0) {
                    return Err(format!("modality '{name}': {what} is {x}"));
                }
            }
            let dictionary = matrix(tensors, &tensor("dictionary", &name), n, m)?;
            let mean = read(tensors, &tensor("mean", &name), &[n])?;
            modalities.push(ModalityModel {
                name,
                dictionary,
                mean: Array1::from(mean),
                scale: entry.scale,
                sigma2: entry.sigma2,
            });
        }
        let names: Vec<&str> = modalities.iter().map(|x| x.name.as_str()).collect();
        let branches = match self.prior {
            PriorKind::OneToOne => Branches::balanced(0, n_atoms, &vec![1; names.len()]),
            _ => {
                let atoms: Vec<_> = modalities.iter().map(|x| Some(x.dictionary.ncols())).collect();
                let root = names.iter().position(|name| Some(*name) == self.root.as_deref());
                let branches = Branches::from_groups(&self.groups, &names, root, &atoms);
                branches.map_err(|error| error.to_string())?
            }
        };
        if self.prior != PriorKind::OneToOne && self.identified.len() != branches.count() {
            return Err("'identified' does not belong to these branches".into());
        }
        let summarised = self.summary.modalities.iter().map(|x| x.name.as_str());
        if !names.iter().copied().eq(summarised) || self.summary.usage.len() != branches.count() {
            return Err("the summary does not belong to these modalities".into());
        }
        if !(self.slab.power.is_finite() && self.slab.power > 0.0 && self.slab.log_odds.is_finite())
        {
            return Err(format!("the slab has power {}", self.slab.power));
        }
        let classifier = self.classifier.map(|entry| entry.with_tensors(&modalities, tensors));
        let n_gamma = self.prior.on(&branches).n_gamma();
        let memory = self.memory.map(|entry| entry.with_tensors(&modalities, n_gamma, tensors));
        Ok(Model {
            classifier: classifier.transpose()?,
            memory: memory.transpose()?,
            modalities,
            preset: self.preset,
            prior: self.prior,
            identified: match self.prior {
                PriorKind::OneToOne => vec![true; branches.count()],
                _ => self.identified,
            },
            branches,
            seed: self.seed,
            stop_reason: self.stop_reason,
            history: self.history,
            slab: self.slab,
            summary: self.summary,
        })
    }
}

/// A named array on its way into a file.
pub(super) struct Tensor {
    name: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    pub fn new<D: Dimension>(name: String, values: &Array<f64, D>) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Tensor { name, shape: values.shape().to_vec(), bytes }
    }

    /// A matrix that is kept row after row.
    pub fn rows(name: String, rows: usize, values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Tensor { name, shape: vec![rows, values.len() / rows.max(1)], bytes }
    }
}

pub(super) fn tensor(kind: &str, modality: &str) -> String {
    format!("{kind}.{modality}")
}

/// The values of a tensor of this shape, all of them finite.
pub(super) fn read(tensors: &SafeTensors, name: &str, shape: &[usize]) -> Read<Vec<f64>> {
    let values = read_any(tensors, name, shape)?;
    match values.iter().all(|x| x.is_finite()) {
        true => Ok(values),
        false => Err(format!("tensor '{name}' holds values that are not finite")),
    }
}

/// The same where rows of NaN say that something is missing.
fn read_any(tensors: &SafeTensors, name: &str, shape: &[usize]) -> Read<Vec<f64>> {
    let view = tensors.tensor(name).map_err(|_| format!("tensor '{name}' is missing"))?;
    if view.shape() != shape || view.dtype() != Dtype::F64 {
        return Err(format!(
            "tensor '{name}' is {:?} {:?} instead of F64 {shape:?}",
            view.dtype(),
            view.shape()
        ));
    }
    Ok(view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}

pub(super) fn matrix(
    tensors: &SafeTensors,
    name: &str,
    rows: usize,
    columns: usize,
) -> Read<Array2<f64>> {
    let values = read(tensors, name, &[rows, columns])?;
    Array2::from_shape_vec((rows, columns), values).map_err(|error| error.to_string())
}

pub(super) fn matrix_with_nan(
    tensors: &SafeTensors,
    name: &str,
    rows: usize,
    columns: usize,
) -> Read<Array2<f64>> {
    let values = read_any(tensors, name, &[rows, columns])?;
    Array2::from_shape_vec((rows, columns), values).map_err(|error| error.to_string())
}

fn problem_with(path: &Path, problem: String) -> Error {
    Error::ModelFile { path: path.to_owned(), problem }
}

/// Temporary files are private; a model should be as readable as any other new file.
fn share_like_others(file: &std::fs::File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}
