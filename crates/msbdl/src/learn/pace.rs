//! Sets how many passes the stages of `auto` take and how fast noise falls in them.

use super::em::Em;
use crate::input::prior::GammaStep;

/// How tempering and selection proceed.
pub(crate) struct Pace {
    /// Multiples of the noise that tempering starts from, in turn; it ends with the first round
    /// that leaves every atom where it was.
    pub temper: &'static [f64],
    /// Factor on that multiple per pass.
    pub cooling: f64,
    /// Passes of one selection, in which noise may shrink by .8 a pass.
    pub select: usize,
    /// Whether gamma takes the faster step.
    sharpen: bool,
    /// The least gamma, relative to the least noise: what an atom comes back from.
    floor: f64,
}

const PAIRS: Pace = Pace {
    temper: &[50.0, 50.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0],
    cooling: 0.85,
    select: 10,
    sharpen: true,
    floor: 0.03,
};
/// A single modality has no other to tell its atoms apart.
const ALONE: Pace = Pace { temper: &[50.0; 10], select: 20, ..PAIRS };
/// Which leaf goes with which root is decided while gamma is soft, and takes the slower step; the
/// last two rounds also decide how many leaves there are.
const LEAVES: Pace = Pace {
    temper: &[50.0, 50.0, 10.0, 10.0, 10.0, 10.0],
    cooling: 0.97,
    select: 20,
    sharpen: false,
    floor: 0.02,
};

impl Pace {
    pub fn of(em: &Em) -> &'static Pace {
        match em.has_leaves() {
            true => &LEAVES,
            false if em.d.len() == 1 => &ALONE,
            false => &PAIRS,
        }
    }

    /// The step of gamma under the least of these noises.
    pub fn step(&self, s: &[f64]) -> GammaStep {
        let floor = self.floor * s.iter().copied().fold(f64::INFINITY, f64::min);
        match self.sharpen {
            true => GammaStep::Sharpen { floor },
            false => GammaStep::Em { floor },
        }
    }

    /// Passes of tempering from a multiple.
    pub fn passes(&self, multiple: f64) -> usize {
        (multiple.ln() / -self.cooling.ln()).ceil() as usize + 1
    }
}
