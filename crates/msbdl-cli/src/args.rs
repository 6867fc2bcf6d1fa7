//! Says what can be asked for on the command line.
//!
//! Numbers are taken as text: [`crate::settings`] and the library check them, and name the option.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::choices::{Coefficients, Posterior, Preset, Prior, RecipeName, Schedule};
use crate::help;

/// Learns dictionaries from several kinds of measurement of the same samples at once
///
/// Each sample is explained as a sum of a few atoms. Every kind of measurement (modality) has
/// its own dictionary of atoms, and all modalities of a sample use the same few. Noise levels and
/// the number of atoms per sample are found from the data; a modality may be missing in some
/// samples. (Multimodal sparse Bayesian dictionary learning.)
#[derive(Parser)]
#[command(name = "msbdl", version, after_help = help::FIRST_STEPS, verbatim_doc_comment)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Demo(Demo),
    Fit(Box<Fit>),
    Encode(Encode),
    Predict(Predict),
    Score(Score),
    Info(Info),
    Synth(Synth),
    Recovery(Recovery),
}

/// Shows it all on bundled data, in less than a minute
///
/// Learns a model of 1,000 handwritten digits in three views, some views and labels hidden, codes
/// the digits with it, names those whose label was hidden, and says what was found. Writes the views (fou.npy, kar.npy, zer.npy), the
/// model (model.safetensors) and the codes (codes.npz) into a folder.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Demo {
    /// Folder to write to; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "msbdl-demo")]
    pub out: PathBuf,
}

/// Learns a model from files
///
/// Finds for every modality a dictionary of atoms and the noise, writes them to a model file, and
/// prints a summary: the noise (standard deviation, in the units of the data), the share of the
/// variance that is explained, the atoms in use, and how the fit ended (E-steps are passes over all
/// samples). Ctrl-C stops it early: the model so far is written; a second Ctrl-C quits at once.
#[derive(Args)]
#[command(after_help = help::FIT_EXAMPLES, after_long_help = help::with_files(help::FIT_EXAMPLES), verbatim_doc_comment)]
pub struct Fit {
    /// A name of your choice and the file with its values; once for each modality
    #[arg(long, value_name = "NAME=FILE", required = true)]
    pub modality: Vec<String>,
    /// Number of atoms: one number, or NAME=M for each modality
    ///
    /// It must be the same in all modalities with the prior one-to-one. With another prior, that
    /// of the root is enough (the others are learnt), and none is needed with --groups.
    #[arg(
        long,
        value_name = "M|NAME=M",
        required_unless_present = "groups",
        allow_negative_numbers = true,
        verbatim_doc_comment
    )]
    pub atoms: Vec<String>,
    /// Where to write the model; the name must end in .safetensors
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How the modalities share what is in use
    #[arg(long, value_enum, default_value = "one-to-one")]
    pub prior: Prior,
    /// Which atoms form a branch (priors other than one-to-one)
    ///
    /// A JSON file with a list of branches, each an object from modality name to the indices of its
    /// atoms, as in [{"image":[0],"text":[0,50]}, ...]. For the prior tree, an atom may hang under
    /// another than the root: {"atom":3,"under":["text",50]} in place of its index.
    /// [default: branches are learnt, see --root and --max-leaves]
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub groups: Option<PathBuf>,
    /// The modality of the roots: every branch has one of its atoms (other priors than one-to-one)
    #[arg(long, value_name = "NAME")]
    pub root: Option<String>,
    /// The most atoms of any other modality that may hang under a root, where that is learnt
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub max_leaves: Option<String>,
    /// Procedure to follow
    #[arg(long, value_enum, default_value = "auto")]
    pub preset: Preset,
    /// Samples that an update uses, if not those of the preset
    #[arg(long, value_enum)]
    pub schedule: Option<Schedule>,
    /// Samples per block of the schedules incremental and batch [default: half of the samples]
    #[arg(long, value_name = "L0", allow_negative_numbers = true)]
    pub batch_size: Option<String>,
    /// How codes are computed, if not as the preset has it
    #[arg(long, value_enum)]
    pub posterior: Option<Posterior>,
    /// Noise to start from (preset paper): one number, or NAME=S for some modalities
    ///
    /// A standard deviation, in the units of the data.
    /// [default: twice the root mean square of the centred data]
    #[arg(long, value_name = "S|NAME=S", allow_negative_numbers = true, verbatim_doc_comment)]
    pub sigma0: Vec<String>,
    /// Noise at which annealing ends (preset paper)
    ///
    /// A standard deviation, in the units of the data.
    /// [default: 0.063 times the root mean square of the centred data]
    #[arg(long, value_name = "S", allow_negative_numbers = true, verbatim_doc_comment)]
    pub sigma_inf: Option<String>,
    /// Factor on the noise per annealing step, between 0 and 1 (preset paper)
    ///
    /// It applies to the standard deviation. [default: the square root of 0.995]
    #[arg(long, value_name = "A", allow_negative_numbers = true)]
    pub alpha: Option<String>,
    /// Iterations after which to stop in any case [default: 20000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_iter: Option<String>,
    /// Seed of the random numbers; the same seed gives the same model
    #[arg(long, value_name = "S", default_value = "0", allow_negative_numbers = true)]
    pub seed: String,
    /// Threads to use; 0 is one per core; the model does not depend on it
    #[arg(long, value_name = "T", default_value = "0", allow_negative_numbers = true)]
    pub threads: String,
    #[command(flatten)]
    pub task: Task,
    /// Take the data as they are, without subtracting the mean of each feature
    #[arg(long)]
    pub no_center: bool,
    #[command(flatten)]
    pub common: Common,
}

/// What fit does with labels.
#[derive(Args)]
pub struct Task {
    /// Labels to learn: a class for each sample, or a matrix of tags (0 and 1)
    ///
    /// The model then also predicts (msbdl predict). An empty or NaN label is a sample without
    /// one, which takes part all the same.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub labels: Option<String>,
    /// Share of the labelled samples whose labels are held back to judge by [default: 0.2]
    ///
    /// It is taken from every class alike; 0 for none.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, hide_short_help = true)]
    pub validation: Option<String>,
    /// Text file with the rows (from 0) or ids of those samples instead, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "validation", hide_short_help = true)]
    pub validation_rows: Option<String>,
    /// Label noise to start from: one number, or NAME=B for some modalities
    ///
    /// A standard deviation. [default: that of the labels themselves]
    #[arg(long, value_name = "B|NAME=B", allow_negative_numbers = true, hide_short_help = true)]
    pub beta0: Vec<String>,
    /// Factor on the label noise per iteration, between 0 and 1
    ///
    /// [default: the square root of 0.967; with preset paper of 0.995]
    #[arg(long, value_name = "A", allow_negative_numbers = true, hide_short_help = true)]
    pub alpha_beta: Option<String>,
    /// Ridge on the projection from codes to labels [default: a thousandth per labelled sample]
    #[arg(long, value_name = "V", allow_negative_numbers = true, hide_short_help = true)]
    pub nu: Option<String>,
    /// Iterations between looks at the labels held back [default: 10]
    #[arg(long, value_name = "T", allow_negative_numbers = true, hide_short_help = true)]
    pub validate_every: Option<String>,
    /// Let every class count the same, however many samples it has
    #[arg(long, hide_short_help = true)]
    pub balance: bool,
}

/// Predicts labels with a model that was fitted with labels
///
/// Takes any of the model's modalities; the others count as missing. A .csv file gets, with a row
/// for each sample: row or id, label, p.LABEL (the probability of each label) and vote.NAME (what
/// the codes of one modality say, which the others helped to make). A .npy file gets the labels
/// alone; of tags, a matrix of 0 and 1.
#[derive(Args)]
#[command(after_help = help::PREDICT_EXAMPLES, after_long_help = help::with_files(help::PREDICT_EXAMPLES), verbatim_doc_comment)]
pub struct Predict {
    /// Model file, as written by 'msbdl fit --labels'
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// The model's name for a modality and the file with its values; once for each modality
    #[arg(long, value_name = "NAME=FILE", required = true)]
    pub modality: Vec<String>,
    /// Let this modality alone decide; the others still help to code it
    #[arg(long, value_name = "NAME")]
    pub modality_only: Option<String>,
    /// Name so many labels for each sample, the most probable first
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub top: Option<String>,
    /// Where to write the predictions; the name must end in .csv or .npy
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Compares predictions with labels
///
/// Prints for classes: accuracy, balanced accuracy, macro F1 and who was taken for whom; for tags:
/// the share of a sample's k tags among its k most probable ones, and the mean average precision.
/// Samples without a label do not count.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Example:\n  msbdl score --predictions predicted.csv --labels truth.csv"
)]
pub struct Score {
    /// File written by 'msbdl predict', .csv
    #[arg(long, value_name = "FILE")]
    pub predictions: PathBuf,
    /// The true labels; matched by id where the predictions have ids
    #[arg(long, value_name = "FILE")]
    pub labels: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Codes samples with a model
///
/// Takes any of the model's modalities; the others count as missing. The archive that is written
/// holds, with a row for each sample:
///   gamma                 how much each atom is in use, shared by the modalities
///   log_evidence          log-likelihood of what was given of each sample
///   mean.NAME             codes: the expected coefficient of each atom
///   variance.NAME         their variances
///   reconstruction.NAME   what the codes stand for, in the units of the data
///   ids                   the samples' ids (with --ids)
#[derive(Args)]
#[command(after_help = help::ENCODE_EXAMPLES, after_long_help = help::with_files(help::ENCODE_EXAMPLES), verbatim_doc_comment)]
pub struct Encode {
    /// Model file, as written by 'msbdl fit'
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// The model's name for a modality and the file with its values; once for each modality
    #[arg(long, value_name = "NAME=FILE", required = true)]
    pub modality: Vec<String>,
    /// Where to write the codes; the name must end in .npz
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Threads to use; 0 is one per core; the codes do not depend on it
    #[arg(long, value_name = "T", default_value = "0", allow_negative_numbers = true)]
    pub threads: String,
    #[command(flatten)]
    pub common: Common,
}

/// What fit and encode have in common.
#[derive(Args)]
pub struct Common {
    /// Match samples by the ids in the first column (csv and tsv files only)
    #[arg(long)]
    pub ids: bool,
    /// Print nothing but errors (and the object of --json)
    #[arg(long)]
    pub quiet: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Says what is in a model
///
/// Prints the modalities with their noise (standard deviation, in the units of the data) and the
/// share of their variance that is explained, the atoms in use, and how the fit ended. Of branches
/// it says how many have which number of leaves, and in how many of them the atoms are identified;
/// in the others only the subspace is, since their leaves are always in use together.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  msbdl info model.safetensors\n  msbdl info model.safetensors --json"
)]
pub struct Info {
    /// Model file, as written by 'msbdl fit'
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Makes synthetic data with a known truth
///
/// Every sample is a sum of a few atoms, the same in all modalities, with its own coefficients
/// and noise in each: the paper's recipe. Writes mod1.npy, mod2.npy, ... (a row for each sample),
/// truth.npz (dictionary.NAME, codes.NAME, sigma2: the mean noise variances) and recipe.json into
/// a folder that is new, empty or an earlier one of its own.
#[derive(Args)]
#[command(after_help = help::SYNTH_EXAMPLES, verbatim_doc_comment)]
pub struct Synth {
    /// What to make
    #[arg(long, value_enum)]
    pub recipe: RecipeName,
    /// Probability that a leaf is in use when its root is, where a root has two (tree recipes)
    #[arg(long, value_name = "P", default_value = "1", allow_negative_numbers = true)]
    pub leaf_on: String,
    /// Signal-to-noise ratio of each modality in dB [default: that of the recipe]
    #[arg(long, value_name = "DB,DB,...", allow_hyphen_values = true)]
    pub snr: Option<String>,
    /// Number of samples
    #[arg(long, value_name = "L", default_value = "1000", allow_negative_numbers = true)]
    pub samples: String,
    /// Number of features of each modality [default: 20; trees as in the paper]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub features: Option<String>,
    /// Number of atoms of each dictionary [default: 50; trees as in the paper]
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    pub atoms: Option<String>,
    /// Number of atoms (of roots) in use per sample
    #[arg(long, value_name = "S", default_value = "5", allow_negative_numbers = true)]
    pub sparsity: String,
    /// Share of the samples that lack each modality, as in .2,.4; no sample lacks two
    #[arg(long, value_name = "P,P,...", allow_hyphen_values = true)]
    pub missing: Option<String>,
    /// How the coefficients of the atoms in use are drawn
    #[arg(long, value_enum, default_value = "normal")]
    pub coefficients: Coefficients,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: String,
    /// Folder to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Measures how much of a known truth a model has found
///
/// Prints for each modality of the model the share of the true atoms that some atom of the model
/// matches (|cosine| above 0.99), and the noise variance beside the true one. Where the truth has
/// branches, also the share of the subspaces of branches with one and with several leaves that a
/// branch of the model matches (the paper's measures), and of branches under the right root.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Example:\n  msbdl recovery --model model.safetensors --truth synth --limit"
)]
pub struct Recovery {
    /// Model file, as written by 'msbdl fit'
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Folder written by 'msbdl synth'
    #[arg(long, value_name = "DIR")]
    pub truth: PathBuf,
    /// Also find what could be recovered if it were known which atoms each sample uses
    ///
    /// Takes about as long as a fit.
    #[arg(long)]
    pub limit: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}
