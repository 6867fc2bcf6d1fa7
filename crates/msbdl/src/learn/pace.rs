//! Sets how many passes the stages of `auto` take and how fast noise falls in them.

use super::em::Em;
use crate::input::prior::GammaStep;

/// How tempering and selection proceed.
pub(crate) struct Pace {
    /// Tempering, round by round; it ends with the first that leaves every atom where it was.
    pub rounds: &'static [Round],
    /// Passes of one selection, in which noise may shrink by .8 a pass.
    pub select: usize,
}

/// How one round is tempered.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// Multiple of the noise that tempering starts from.
    pub multiple: f64,
    /// Factor on that multiple per pass.
    pub cooling: f64,
    /// Whether gamma takes the faster step.
    sharpen: bool,
    /// The least gamma, relative to the least noise: what an atom comes back from.
    floor: f64,
}

const fn brisk(multiple: f64, cooling: f64) -> Round {
    Round { multiple, cooling, sharpen: true, floor: 0.03 }
}

const fn gentle(multiple: f64, cooling: f64) -> Round {
    Round { multiple, cooling, sharpen: false, floor: 0.02 }
}

const HOT: Round = brisk(50.0, 0.85);
const WARM: Round = brisk(20.0, 0.85);
const PAIRS: Pace = Pace { rounds: &[HOT, HOT, WARM, WARM, WARM, WARM, WARM, WARM], select: 10 };
/// A single modality has no other to tell its atoms apart.
const ALONE: Pace = Pace { rounds: &[HOT; 10], select: 20 };
/// Which leaf goes with which root is decided while gamma is soft; the last two rounds only decide
/// how many leaves there are.
const LEAVES: Pace = Pace { rounds: &[FIRST, SOFT, MILD, MILD, LAST, LAST], select: 20 };
const FIRST: Round = gentle(20.0, 0.97);
const SOFT: Round = gentle(50.0, 0.97);
const MILD: Round = gentle(10.0, 0.96);
const LAST: Round = brisk(10.0, 0.94);

impl Pace {
    pub fn of(em: &Em) -> &'static Pace {
        match em.has_leaves() {
            true => &LEAVES,
            false if em.d.len() == 1 => &ALONE,
            false => &PAIRS,
        }
    }
}

impl Round {
    /// The step of gamma under the least of these noises.
    pub fn step(&self, s: &[f64]) -> GammaStep {
        let floor = self.floor * s.iter().copied().fold(f64::INFINITY, f64::min);
        match self.sharpen {
            true => GammaStep::Sharpen { floor },
            false => GammaStep::Em { floor },
        }
    }

    /// Passes of tempering.
    pub fn passes(&self) -> usize {
        (self.multiple.ln() / -self.cooling.ln()).ceil() as usize + 1
    }
}
