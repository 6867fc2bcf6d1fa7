//! Keeps labelled samples of all batches, as many as memory shall hold, for fitting read-outs.

use std::collections::BTreeMap;

use ndarray::{Array2, Axis, s};
use rand::RngExt;

use super::stream::Named;
use crate::input::labels::{LabelKind, Labels};
use crate::support::error::Result;
use crate::support::random::{Purpose, stream};

/// Labelled samples that are kept at most.
const MOST: usize = 5000;

/// Labelled samples: the first [`MOST`], then a uniform draw of that many.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub kind: LabelKind,
    /// Per modality, in the user's units; rows of NaN where it is missing.
    pub samples: Vec<Array2<f64>>,
    /// Their labels, a column for each class or tag.
    pub h: Array2<f64>,
    /// Whether learning sees a sample's label.
    pub shown: Vec<bool>,
    /// Labelled samples so far: by class, or of tags altogether in the first place.
    pub counts: Vec<usize>,
    /// Rows of the batches with names that were held back.
    pub blocks: BTreeMap<String, Vec<usize>>,
}

/// Labels of a batch, and the rows among them that are held back.
pub(crate) type Told<'a> = (&'a Labels, &'a [usize]);

/// Samples on their way in, and the places they take.
pub(crate) struct Drawn {
    places: Vec<usize>,
    samples: Vec<Array2<f64>>,
    h: Array2<f64>,
    shown: Vec<bool>,
}

impl Kept {
    /// No sample yet, of so many features in every modality.
    pub fn new(kind: LabelKind, c: usize, n_features: Vec<usize>) -> Self {
        Kept {
            kind,
            samples: n_features.into_iter().map(|n| Array2::zeros((0, n))).collect(),
            h: Array2::zeros((0, c)),
            shown: Vec::new(),
            counts: vec![0; c],
            blocks: BTreeMap::new(),
        }
    }

    /// The labelled samples of a new batch whose labels learning shall not see: of every class (of
    /// tags: altogether) the same share, evenly spread; never the first.
    pub fn hold(&self, labels: &Labels, share: f64) -> Vec<usize> {
        let mut counts = self.counts.clone();
        let due = |count: usize| (count as f64 * share + 0.5) as usize;
        labelled(labels)
            .filter(|&row| {
                let count = &mut counts[labels.class(row).unwrap_or(0)];
                *count += 1;
                *count > 1 && due(*count) > due(*count - 1)
            })
            .collect()
    }

    /// Chooses which labelled samples of a batch to take in.
    pub fn draw(&self, batch: &Named, names: &[&str], (labels, held): Told, seed: u64) -> Drawn {
        let seen: usize = self.counts.iter().sum();
        // Every batch has random numbers of its own, so that none need be remembered.
        let mut random = stream(seed.wrapping_add(seen as u64), Purpose::Keep);
        let mut rows = BTreeMap::new();
        for (number, row) in (seen..).zip(labelled(labels)) {
            // Algorithm R: sample n takes a random place out of n + 1, if that is one of ours.
            let place = if number < MOST { number } else { random.random_range(0..=number) };
            if place < MOST {
                rows.insert(place, row);
            }
        }
        let (places, rows): (Vec<usize>, Vec<usize>) = rows.into_iter().unzip();
        let samples = names.iter().zip(&self.samples).map(|(name, kept)| {
            match batch.iter().find(|(given, _)| given == name) {
                Some((_, y)) => y.select(Axis(0), &rows),
                None => Array2::from_elem((rows.len(), kept.ncols()), f64::NAN),
            }
        });
        Drawn {
            samples: samples.collect(),
            h: labels.h().select(Axis(0), &rows),
            shown: rows.iter().map(|row| !held.contains(row)).collect(),
            places,
        }
    }

    /// Takes in what was drawn of a batch with these labels.
    pub fn take(&mut self, drawn: Drawn, labels: &Labels) {
        labelled(labels).for_each(|row| self.counts[labels.class(row).unwrap_or(0)] += 1);
        let size = self.counts.iter().sum::<usize>().min(MOST);
        for (kept, new) in self.samples.iter_mut().zip(&drawn.samples) {
            spread(kept, new, &drawn.places, size);
        }
        spread(&mut self.h, &drawn.h, &drawn.places, size);
        self.shown.resize(size, false);
        drawn.places.iter().zip(drawn.shown).for_each(|(&place, shown)| self.shown[place] = shown);
    }

    /// The labels without classes of which none is shown, and the rows that have one.
    pub fn labels(&self, names: &[String]) -> Result<(Labels, Vec<usize>)> {
        let tags = self.kind == LabelKind::Tags;
        let shown = |c: usize| {
            let mut each = self.h.column(c).into_iter().zip(&self.shown);
            each.any(|(h, shown)| *h == 1.0 && *shown)
        };
        let columns: Vec<usize> = (0..names.len()).filter(|&c| tags || shown(c)).collect();
        let has_one = |row: usize| columns.iter().any(|&c| self.h[[row, c]] == 1.0);
        let rows: Vec<usize> = (0..self.shown.len()).filter(|&row| tags || has_one(row)).collect();
        let h = self.h.select(Axis(0), &rows).select(Axis(1), &columns);
        let names = columns.iter().map(|&c| names[c].clone()).collect();
        Ok((Labels::table(self.kind, names, h)?, rows))
    }
}

fn labelled(labels: &Labels) -> impl Iterator<Item = usize> + '_ {
    (0..labels.n_samples()).filter(|&row| labels.known()[row])
}

/// Makes `kept` so many rows, and puts new rows in their places.
fn spread(kept: &mut Array2<f64>, new: &Array2<f64>, places: &[usize], size: usize) {
    let mut all = Array2::zeros((size, kept.ncols()));
    all.slice_mut(s![..kept.nrows(), ..]).assign(kept);
    for (&place, new) in places.iter().zip(new.rows()) {
        all.row_mut(place).assign(&new);
    }
    *kept = all;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(start: usize, count: usize) -> Labels {
        let names = vec!["0".into(), "1".into(), "2".into()];
        let each: Vec<Option<String>> =
            (start..start + count).map(|i| Some((i % 3).to_string())).collect();
        Labels::among(names, &each).unwrap()
    }

    /// Every sample is as likely to be kept as any other, and has its own label and part.
    #[test]
    fn more_than_can_be_kept_are_drawn_evenly() {
        let mut early = 0;
        for seed in 0..10 {
            let mut kept = Kept::new(LabelKind::Classes, 3, vec![1]);
            for start in (0..10_000).step_by(500) {
                let numbers = Array2::from_shape_fn((500, 1), |(i, _)| (start + i) as f64);
                let told = labels(start, 500);
                let held = kept.hold(&told, 0.2);
                let batch = vec![("a".to_owned(), numbers)];
                let drawn = kept.draw(&batch, &["a"], (&told, &held), seed);
                kept.take(drawn, &told);
            }
            let numbers: Vec<usize> = kept.samples[0].iter().map(|x| *x as usize).collect();
            let different: std::collections::HashSet<&usize> = numbers.iter().collect();
            assert_eq!((numbers.len(), different.len()), (MOST, MOST));
            assert!(numbers.iter().enumerate().all(|(row, x)| kept.h[[row, x % 3]] == 1.0));
            let held = kept.shown.iter().filter(|shown| !**shown).count();
            assert!(held.abs_diff(MOST / 5) < MOST / 40, "{held} are held back");
            early += numbers.iter().filter(|x| **x < 5000).count();
        }
        // 50000 draws: the standard deviation is about 110.
        assert!(early.abs_diff(25_000) < 600, "{early}");
    }

    #[test]
    fn of_every_class_the_same_share_is_held_back_and_never_the_first() {
        let mut kept = Kept::new(LabelKind::Classes, 3, vec![1]);
        let mut held_so_far = [0; 3];
        for (batch, start) in (0..300).step_by(30).enumerate() {
            let told = labels(start, 30);
            let held = kept.hold(&told, 0.25);
            held.iter().for_each(|row| held_so_far[row % 3] += 1);
            assert!(batch > 0 || held.iter().all(|row| *row >= 3));
            kept.counts.iter_mut().for_each(|count| *count += 10);
        }
        assert_eq!(held_so_far, [25; 3]);
    }

    #[test]
    fn classes_of_which_none_is_shown_are_left_out() {
        let mut kept = Kept::new(LabelKind::Classes, 3, vec![1]);
        let told = labels(0, 9);
        let batch = vec![("a".to_owned(), Array2::zeros((9, 1)))];
        let drawn = kept.draw(&batch, &["a"], (&told, &[1, 4, 7]), 0);
        kept.take(drawn, &told);
        let (labels, rows) = kept.labels(told.names()).unwrap();
        assert_eq!(labels.names(), ["0", "2"]);
        assert_eq!(rows, [0, 2, 3, 5, 6, 8]);
    }
}
