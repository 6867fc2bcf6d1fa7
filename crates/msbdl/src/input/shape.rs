//! Decides how many atoms every modality has and how they form branches.

use super::branches::Branches;
use super::config::{Config, Preset, setting, spread};
use super::data::Data;
use super::prior::PriorKind;
use crate::support::error::{Error, Result};

/// The branches that a fit starts with, and those that it is to end with.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub prior: PriorKind,
    /// As many atoms of a modality in every branch: trees are learnt best from there.
    pub start: Branches,
    pub end: End,
}

#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Those of the start, or others that the user gave.
    Given(Branches),
    /// As the data want it; where a number is given, a modality ends with so many atoms.
    Learnt(Vec<Option<usize>>),
}

impl Config {
    /// Checks atoms, groups, root and the number of leaves against the data.
    pub(crate) fn shape(&self, data: &Data) -> Result<Shape> {
        if self.max_leaves == Some(0) {
            return Err(setting("max-leaves", "at least 1", 0));
        }
        match self.prior {
            PriorKind::OneToOne => self.one_to_one(data),
            prior => Ok(Shape { prior, ..self.tree(data)? }),
        }
    }

    fn one_to_one(&self, data: &Data) -> Result<Shape> {
        let given = [
            ("groups", self.groups.is_some()),
            ("root", self.root.is_some()),
            ("max-leaves", self.max_leaves.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(setting(option, "used with another prior than one-to-one", "given"));
        }
        let mut first = None;
        for (modality, atoms) in data.modalities().iter().zip(self.atoms(data)?) {
            let Some(atoms) = atoms else {
                let found = format!("nothing for '{}'", modality.name());
                return Err(setting("atoms", "given for every modality", found));
            };
            match first {
                None => first = Some(atoms),
                Some(first) if first != atoms => {
                    let expected = "the same number in every modality (one-to-one prior)";
                    return Err(setting("atoms", expected, format!("{first} and {atoms}")));
                }
                Some(_) => {}
            }
        }
        let count = first.ok_or(Error::NoModality)?;
        let start = balanced(data, 0, count, &vec![1; data.modalities().len()])?;
        Ok(Shape { prior: PriorKind::OneToOne, end: End::Given(start.clone()), start })
    }

    fn tree(&self, data: &Data) -> Result<Shape> {
        let names: Vec<&str> = data.modalities().iter().map(|x| x.name()).collect();
        let root = self.root.as_ref().map(|root| {
            names.iter().position(|name| name == root).ok_or_else(|| Error::UnknownModality {
                option: "root",
                name: root.clone(),
                known: names.join(", "),
            })
        });
        let root = root.transpose()?;
        let atoms = self.atoms(data)?;
        if let Some(groups) = &self.groups {
            if self.max_leaves.is_some() {
                return Err(setting("max-leaves", "left out where groups are given", "given"));
            }
            let end = Branches::from_groups(groups, &names, root, &atoms)?;
            let most: Vec<usize> = (0..names.len()).map(|j| end.most(j)).collect();
            let start = balanced(data, end.root(), end.count(), &most)?;
            return Ok(Shape { prior: self.prior, start, end: End::Given(end) });
        }
        let Some(root) = root else {
            let expected = "given, or groups instead, with another prior than one-to-one";
            return Err(setting("root", expected, "missing"));
        };
        let Some(count) = atoms[root] else {
            let found = format!("nothing for '{}'", names[root]);
            return Err(setting("atoms", "given for the root", found));
        };
        let mut leaves = vec![1; names.len()];
        for j in (0..names.len()).filter(|&j| j != root) {
            leaves[j] = self.leaves(names[j], count, atoms[j])?;
        }
        let start = balanced(data, root, count, &leaves)?;
        Ok(Shape { prior: self.prior, start, end: End::Learnt(atoms) })
    }

    /// The most leaves of one modality that a branch may have.
    fn leaves(&self, name: &str, count: usize, atoms: Option<usize>) -> Result<usize> {
        let found = format!("nothing for '{name}'");
        if self.preset == Preset::Paper && atoms.is_none() {
            let expected = "given for every modality with the preset 'paper'";
            return Err(setting("atoms", expected, found));
        }
        let most = match (self.max_leaves, atoms) {
            (Some(most), _) => most,
            (None, Some(atoms)) => atoms.div_ceil(count),
            (None, None) => {
                let expected = "given where the number of atoms is to be learnt";
                return Err(setting("max-leaves", expected, found));
            }
        };
        let range = count..=count.saturating_mul(most);
        if let Some(atoms) = atoms.filter(|atoms| !range.contains(atoms)) {
            let expected = format!(
                "from one to {most} for each of the {count} atoms of the root in modality '{name}'"
            );
            return Err(setting("atoms", &expected, atoms));
        }
        Ok(most)
    }

    fn atoms(&self, data: &Data) -> Result<Vec<Option<usize>>> {
        let atoms = spread(&self.n_atoms, data, "atoms")?;
        match atoms.contains(&Some(0)) {
            true => Err(setting("atoms", "at least 1", 0)),
            false => Ok(atoms),
        }
    }
}

/// Branches that start at samples: refused, before they are made, where there are too few.
fn balanced(data: &Data, root: usize, count: usize, leaves: &[usize]) -> Result<Branches> {
    for (modality, &leaves) in data.modalities().iter().zip(leaves) {
        let rows = modality.y().rows().into_iter();
        let usable = rows.filter(|row| row.iter().any(|x| *x != 0.0)).count();
        let atoms = count.saturating_mul(leaves);
        if atoms > usable {
            let name = modality.name().to_owned();
            return Err(Error::TooManyAtoms { atoms, usable, name });
        }
    }
    Ok(Branches::balanced(root, count, leaves))
}
