//! Updates a dictionary from the sums: D = B C^-1, then unit columns.

use ndarray::{Array1, Array2, Zip, s};

use super::stats::ModalityStats;
use crate::support::error::{Error, Result};
use crate::support::linalg;

/// Pull towards the old dictionary, relative to the mean of diag(C): decides nothing where
/// the data speak and keeps the columns of atoms that no sample uses.
const STAY: f64 = 1e-10;

/// The maximiser of the expected log-likelihood, and |D_new - D_old| / |D_old|.
///
/// With `offset`, the mean of the data is a parameter too: it is a further column of D whose
/// code is one in every sample. (The plain mean of sparse data is off by the spread of the
/// codes, which at 30 dB is as large as the noise.)
pub(crate) fn update_dictionary(
    d: &mut Array2<f64>,
    offset: Option<&mut Array1<f64>>,
    stats: &ModalityStats,
    normalise: bool,
) -> Result<f64> {
    let (n, m) = d.dim();
    let stay = STAY * stats.c.diag().sum() / m as f64;
    if stay == 0.0 {
        // No sample uses any atom: there is nothing to say about the dictionary.
        return Ok(0.0);
    }
    let size = if offset.is_some() { m + 1 } else { m };
    let mut c = Array2::zeros((size, size));
    c.slice_mut(s![..m, ..m]).assign(&stats.c);
    c.diag_mut().slice_mut(s![..m]).mapv_inplace(|x| x + stay);
    let mut b = Array2::zeros((n, size));
    let atoms = b.slice_mut(s![.., ..m]);
    Zip::from(atoms).and(&stats.b).and(&*d).for_each(|to, b, d| *to = b + stay * d);
    if offset.is_some() {
        c.slice_mut(s![..m, m]).assign(&stats.mu);
        c.slice_mut(s![m, ..m]).assign(&stats.mu);
        c[[m, m]] = stats.count as f64;
        b.column_mut(m).assign(&stats.y);
    }
    let mut new = linalg::right_divide(b, c.view())
        .filter(|new| new.iter().all(|x| x.is_finite()))
        .ok_or_else(|| Error::Numerical("the dictionary update is singular".into()))?;
    if let Some(offset) = offset {
        offset.assign(&new.column(m));
        new = new.slice(s![.., ..m]).to_owned();
    }
    if normalise {
        linalg::normalise_columns(&mut new);
    }
    let (mut change, mut size) = (0.0, 0.0);
    Zip::from(&new).and(&*d).for_each(|new, d| {
        change += (new - d).powi(2);
        size += d * d;
    });
    *d = new;
    Ok((change / size).sqrt())
}
