//! Names the choices of the command line and what they mean to the library.

use clap::ValueEnum;
use msbdl::synth;
use serde::Serialize;

#[derive(Clone, Copy, ValueEnum)]
pub enum Preset {
    /// Finds the noise by itself; all samples, exact posteriors
    Auto,
    /// The paper's algorithm: the noise is annealed from sigma0 to sigma-inf
    Paper,
    /// As auto, with the incremental schedule
    #[value(name = "msbdl-1")]
    Msbdl1,
    /// As auto, with the incremental schedule and approximate posteriors
    #[value(name = "msbdl-2")]
    Msbdl2,
    /// As auto, with the batch schedule
    #[value(name = "msbdl-3")]
    Msbdl3,
    /// As auto, with the batch schedule and approximate posteriors
    #[value(name = "msbdl-4")]
    Msbdl4,
}

impl From<Preset> for msbdl::Preset {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Auto => msbdl::Preset::Auto,
            Preset::Paper => msbdl::Preset::Paper,
            Preset::Msbdl1 => msbdl::Preset::Msbdl1,
            Preset::Msbdl2 => msbdl::Preset::Msbdl2,
            Preset::Msbdl3 => msbdl::Preset::Msbdl3,
            Preset::Msbdl4 => msbdl::Preset::Msbdl4,
        }
    }
}

impl From<msbdl::Preset> for Preset {
    fn from(preset: msbdl::Preset) -> Self {
        match preset {
            msbdl::Preset::Auto => Preset::Auto,
            msbdl::Preset::Paper => Preset::Paper,
            msbdl::Preset::Msbdl1 => Preset::Msbdl1,
            msbdl::Preset::Msbdl2 => Preset::Msbdl2,
            msbdl::Preset::Msbdl3 => Preset::Msbdl3,
            msbdl::Preset::Msbdl4 => Preset::Msbdl4,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Prior {
    /// Atom m of every modality is in use or not together; as many atoms in all modalities
    OneToOne,
    /// All atoms of a branch are in use or not together; a modality may have more atoms than another
    AtomToSubspace,
    /// Leaves may also be in use or not on their own: the paper's hierarchical prior
    Hierarchical,
    /// No atom has more variance than the one it hangs under; trees of any depth
    Tree,
}

impl From<Prior> for msbdl::PriorKind {
    fn from(prior: Prior) -> Self {
        match prior {
            Prior::OneToOne => msbdl::PriorKind::OneToOne,
            Prior::AtomToSubspace => msbdl::PriorKind::AtomToSubspace,
            Prior::Hierarchical => msbdl::PriorKind::Hierarchical,
            Prior::Tree => msbdl::PriorKind::Tree,
        }
    }
}

impl From<msbdl::PriorKind> for Prior {
    fn from(prior: msbdl::PriorKind) -> Self {
        match prior {
            msbdl::PriorKind::OneToOne => Prior::OneToOne,
            msbdl::PriorKind::AtomToSubspace => Prior::AtomToSubspace,
            msbdl::PriorKind::Hierarchical => Prior::Hierarchical,
            msbdl::PriorKind::Tree => Prior::Tree,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Schedule {
    /// All samples
    Full,
    /// All samples, but only one block of them is coded anew
    Incremental,
    /// One block of samples alone
    Batch,
}

impl From<Schedule> for msbdl::Schedule {
    fn from(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Full => msbdl::Schedule::Full,
            Schedule::Incremental => msbdl::Schedule::Incremental,
            Schedule::Batch => msbdl::Schedule::Batch,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Posterior {
    /// Exact means and variances
    Exact,
    /// Means by conjugate gradients and variances one by one, for many features and atoms
    Approximate,
}

impl From<Posterior> for msbdl::Posterior {
    fn from(posterior: Posterior) -> Self {
        match posterior {
            Posterior::Exact => msbdl::Posterior::Exact,
            Posterior::Approximate => msbdl::Posterior::Approximate,
        }
    }
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeName {
    /// Two modalities, at 30 and 10 dB
    Bimodal,
    /// Three modalities, at 30, 20 and 10 dB
    Trimodal,
    /// Roots and leaves: 50 roots with two leaves each, at 30 and 30 dB
    #[value(name = "tree-A")]
    #[serde(rename = "tree-A")]
    TreeA,
    /// 50 roots, ten of them with two leaves, at 30 and 30 dB
    #[value(name = "tree-B")]
    #[serde(rename = "tree-B")]
    TreeB,
    /// As tree-B, at 30 and 10 dB
    #[value(name = "tree-C")]
    #[serde(rename = "tree-C")]
    TreeC,
    /// As tree-B, at 10 and 30 dB
    #[value(name = "tree-D")]
    #[serde(rename = "tree-D")]
    TreeD,
}

impl RecipeName {
    /// The paper's signal-to-noise ratios in dB.
    pub fn snr(self) -> &'static [f64] {
        match self {
            RecipeName::Bimodal => &[30.0, 10.0],
            RecipeName::Trimodal => &[30.0, 20.0, 10.0],
            RecipeName::TreeA | RecipeName::TreeB => &[30.0, 30.0],
            RecipeName::TreeC => &[30.0, 10.0],
            RecipeName::TreeD => &[10.0, 30.0],
        }
    }

    /// The paper's case, if it is one of trees.
    pub fn case(self) -> Option<synth::Case> {
        match self {
            RecipeName::Bimodal | RecipeName::Trimodal => None,
            RecipeName::TreeA => Some(synth::Case::A),
            RecipeName::TreeB => Some(synth::Case::B),
            RecipeName::TreeC => Some(synth::Case::C),
            RecipeName::TreeD => Some(synth::Case::D),
        }
    }
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Coefficients {
    /// Standard normal, as in the paper
    Normal,
    /// Uniform in +-[0.5, 1.5]
    Uniform,
}

impl From<Coefficients> for synth::Coefficients {
    fn from(coefficients: Coefficients) -> Self {
        match coefficients {
            Coefficients::Normal => synth::Coefficients::Normal,
            Coefficients::Uniform => synth::Coefficients::Uniform,
        }
    }
}

/// The name of a choice as the user writes it.
pub fn name(choice: impl ValueEnum) -> String {
    let value = choice.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
