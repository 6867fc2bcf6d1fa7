//! Says which atoms of all modalities belong together, and checks what a user says of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::support::error::{Error, Result};

/// Branches as users write them: of every modality by name, the atoms that belong to the branch.
pub type Groups = Vec<BTreeMap<String, Vec<Place>>>;

/// An atom of a branch. A plain index hangs under the branch's root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    Atom(usize),
    /// For trees of more than two levels: under an atom of another modality of the branch.
    Under {
        atom: usize,
        under: (String, usize),
    },
}

impl Place {
    pub fn atom(&self) -> usize {
        match self {
            Place::Atom(atom) | Place::Under { atom, .. } => *atom,
        }
    }
}

/// An atom of a modality.
pub(crate) type Node = (usize, usize);

/// Checked branches. Branch k has atom k of the root modality and any number of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Branches {
    root: usize,
    /// Modality -> branch -> its atoms.
    atoms: Vec<Vec<Vec<usize>>>,
    /// Modality -> atom -> its branch.
    branch_of: Vec<Vec<usize>>,
    /// Modality -> atom -> what it hangs under; roots hang under nothing.
    parent: Vec<Vec<Option<Node>>>,
}

impl Branches {
    /// `leaves[j]` atoms of modality j in every branch: the paper's T^k = {k, k + K, ...}.
    pub(crate) fn balanced(root: usize, count: usize, leaves: &[usize]) -> Self {
        let of = |(j, &leaves): (usize, &usize)| {
            let size = if j == root { 1 } else { leaves };
            (0..count).map(|k| (0..size).map(|r| k + r * count).collect()).collect()
        };
        Self::flat(root, leaves.iter().enumerate().map(of).collect())
    }

    /// Two levels, from modality -> branch -> atoms.
    pub(crate) fn flat(root: usize, atoms: Vec<Vec<Vec<usize>>>) -> Self {
        let mut branch_of = Vec::new();
        let mut parent = Vec::new();
        for (j, branches) in atoms.iter().enumerate() {
            let mut of = vec![0; branches.iter().map(Vec::len).sum()];
            for (k, atoms) in branches.iter().enumerate() {
                atoms.iter().for_each(|&m| of[m] = k);
            }
            parent.push(of.iter().map(|&k| (j != root).then_some((root, k))).collect());
            branch_of.push(of);
        }
        Branches { root, atoms, branch_of, parent }
    }

    /// Checks groups against modalities with so many atoms.
    pub fn new(groups: &Groups, names: &[&str], n_atoms: &[usize]) -> Result<Self> {
        let n_atoms: Vec<Option<usize>> = n_atoms.iter().copied().map(Some).collect();
        Self::from_groups(groups, names, None, &n_atoms)
    }

    /// Checks groups against the modalities and, where they are known, the numbers of atoms.
    pub(crate) fn from_groups(
        groups: &Groups,
        names: &[&str],
        root: Option<usize>,
        n_atoms: &[Option<usize>],
    ) -> Result<Self> {
        let mut atoms: Vec<Vec<Vec<usize>>> = vec![vec![Vec::new(); groups.len()]; names.len()];
        let mut seen: BTreeMap<Node, usize> = BTreeMap::new();
        for (k, group) in groups.iter().enumerate() {
            for (name, places) in group {
                let j = position(name, names)?;
                for atom in places.iter().map(Place::atom) {
                    if let Some(m) = n_atoms[j].filter(|m| atom >= *m) {
                        return wrong(format!(
                            "branch {k} has atom {atom} of modality '{name}', which has {m} atoms"
                        ));
                    }
                    if let Some(other) = seen.insert((j, atom), k) {
                        return wrong(format!(
                            "atom {atom} of modality '{name}' is in branch {other} and again in \
                             branch {k}"
                        ));
                    }
                    atoms[j][k].push(atom);
                }
            }
        }
        for (j, name) in names.iter().enumerate() {
            let listed = atoms[j].iter().flatten().count();
            let m = n_atoms[j].unwrap_or(listed);
            if let Some(atom) = (0..m.max(1)).find(|&atom| !seen.contains_key(&(j, atom))) {
                return wrong(format!("atom {atom} of modality '{name}' is in no branch"));
            }
            if let Some(((_, atom), k)) = seen.range((j, m)..(j + 1, 0)).next() {
                return wrong(format!(
                    "branch {k} has atom {atom} of modality '{name}', which has {m} atoms"
                ));
            }
        }
        let single = |j: usize| atoms[j].iter().all(|atoms| atoms.len() == 1);
        let root = match root.or_else(|| (0..names.len()).find(|&j| single(j))) {
            Some(root) => root,
            None => {
                return wrong("no modality has one atom in every branch, as the root must".into());
            }
        };
        if let Some(k) = (0..groups.len()).find(|&k| atoms[root][k].len() != 1) {
            let (found, name) = (atoms[root][k].len(), names[root]);
            return wrong(format!(
                "branch {k} has {found} atoms of the root modality '{name}' instead of one"
            ));
        }
        // Branch k is the one with atom k of the root.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&k| atoms[root][k][0]);
        for branches in &mut atoms {
            *branches = order.iter().map(|&k| std::mem::take(&mut branches[k])).collect();
        }
        let mut branches = Self::flat(root, atoms);
        branches.hang(groups, names)?;
        Ok(branches)
    }

    /// Hangs atoms under the ones that they name.
    fn hang(&mut self, groups: &Groups, names: &[&str]) -> Result<()> {
        for (name, place) in groups
            .iter()
            .flatten()
            .flat_map(|(n, places)| places.iter().map(move |place| (n, place)))
        {
            let Place::Under { atom, under: (above_name, above) } = place else { continue };
            let (j, above_j) = (position(name, names)?, position(above_name, names)?);
            let what = format!("atom {atom} of modality '{name}'");
            if j == self.root {
                return wrong(format!("{what} is a root and cannot hang under another atom"));
            }
            let k = self.branch_of[j][*atom];
            if self.branch_of[above_j].get(*above) != Some(&k) {
                return wrong(format!(
                    "{what} hangs under atom {above} of modality '{above_name}', which is not in \
                     its branch"
                ));
            }
            self.parent[j][*atom] = Some((above_j, *above));
        }
        let longest = self.branch_of.iter().map(Vec::len).sum();
        for (j, name) in names.iter().enumerate() {
            for atom in 0..self.n_atoms(j) {
                let up = std::iter::successors(Some((j, atom)), |&(j, m)| self.parent[j][m]);
                if up.take(longest + 1).count() > longest {
                    return wrong(format!(
                        "atom {atom} of modality '{name}' hangs, in the end, under itself"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The branches in the form that users write.
    pub fn to_groups(&self, names: &[&str]) -> Groups {
        let place = |j: usize, atom: usize| match self.parent[j][atom] {
            Some((above_j, above)) if above_j != self.root => {
                Place::Under { atom, under: (names[above_j].to_owned(), above) }
            }
            _ => Place::Atom(atom),
        };
        let branch = |k: usize| {
            let each = names.iter().enumerate().filter(|(j, _)| !self.atoms(*j, k).is_empty());
            each.map(|(j, name)| {
                let places = self.atoms(j, k).iter().map(|&atom| place(j, atom));
                ((*name).to_owned(), places.collect())
            })
            .collect()
        };
        (0..self.count()).map(branch).collect()
    }

    /// The modality of the roots.
    pub fn root(&self) -> usize {
        self.root
    }

    /// The number of branches.
    pub fn count(&self) -> usize {
        self.atoms[self.root].len()
    }

    pub fn n_modalities(&self) -> usize {
        self.atoms.len()
    }

    pub fn n_atoms(&self, j: usize) -> usize {
        self.branch_of[j].len()
    }

    /// The atoms of modality `j` in branch `k`.
    pub fn atoms(&self, j: usize, k: usize) -> &[usize] {
        &self.atoms[j][k]
    }

    pub fn branch_of(&self, j: usize) -> &[usize] {
        &self.branch_of[j]
    }

    pub(crate) fn parent(&self, (j, m): Node) -> Option<Node> {
        self.parent[j][m]
    }

    /// The most atoms of modality `j` that a branch has.
    pub(crate) fn most(&self, j: usize) -> usize {
        self.atoms[j].iter().map(Vec::len).max().unwrap_or(0)
    }
}

fn position(name: &str, names: &[&str]) -> Result<usize> {
    names.iter().position(|known| *known == name).ok_or_else(|| Error::UnknownModality {
        option: "groups",
        name: name.to_owned(),
        known: names.join(", "),
    })
}

fn wrong<T>(problem: String) -> Result<T> {
    Err(Error::Groups(problem))
}
