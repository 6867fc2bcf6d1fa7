//! Tells the leaves of a branch apart where they switch on and off, and says where they do not.
//!
//! Leaves that are always on together can be turned into one another without changing anything;
//! only their span is known. Leaves that switch on and off independently have axes of their own
//! (axes.rs).

use super::codes::{CLEAR, Change, Codes};
use super::em::Em;

/// Leaves shorter than this share of the branch's longest (in |d|^2) are left alone.
const LEAST: f64 = 0.02;

/// Gives the leaves of every branch the axes along which they switch, where they do so clearly;
/// whether they do, per branch.
pub(crate) fn separate(em: &mut Em) -> Vec<bool> {
    let mut identified = vec![true; em.prior.n_branches()];
    for j in 0..em.d.len() {
        let members = em.members(j);
        if members.iter().all(|atoms| atoms.len() < 2) {
            continue;
        }
        let codes = Codes::of(em, j);
        let mut change = Change::none(em.d[j].ncols());
        for (k, atoms) in members.iter().enumerate().filter(|(_, atoms)| atoms.len() > 1) {
            let long = codes.long(atoms, LEAST);
            let found = codes.axes(&long, &[k]).filter(|axes| axes.switching > CLEAR);
            identified[k] &= found.is_some();
            if let Some(axes) = found {
                change.set(&long, &axes.t, &axes.inverse);
            }
        }
        em.transform(j, &change.t, &change.inverse);
    }
    identified
}
