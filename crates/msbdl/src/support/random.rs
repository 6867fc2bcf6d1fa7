//! Gives every purpose its own stream of random numbers, so that one does not shift another.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What the numbers are for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Initialise,
    Shuffle,
    Dictionary,
    Codes,
    Noise,
    Missing,
    Validation,
    Keep,
}

pub(crate) fn stream(seed: u64, purpose: Purpose) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose as u64);
    rng
}
