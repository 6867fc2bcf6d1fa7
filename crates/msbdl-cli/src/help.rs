//! Holds the longer texts of the help.

pub const FIRST_STEPS: &str = "\
First steps:
  msbdl demo                                   try it on bundled data
  msbdl fit --modality image=image.npy --modality text=text.csv \\
            --atoms 60 --out model.safetensors
  msbdl info model.safetensors
  msbdl encode --model model.safetensors --modality image=new.npy --out codes.npz
  msbdl fit --modality image=image.npy --labels classes.txt --atoms 60 --out model.safetensors
  msbdl predict --model model.safetensors --modality image=new.npy --out predicted.csv

Exit codes: 0 done, 1 the run failed, 2 something is wrong with the input or the options.";

const FILES: &str = "\
Files:
  FILE is .npy, .npz (several arrays inside: file.npz:array), .csv or .tsv.
  Rows are samples, columns are features. All files have the same rows in the same order, or
  ids in their first column (csv and tsv) and the option --ids.
  A modality that a sample lacks is a row of NaN (csv: empty, NA or nan in every cell), or no row
  at all with --ids. A row must be complete or missing as a whole.
  Rows and columns in messages count from 0, as in NumPy; lines of csv files count from 1.";

pub const FIT_EXAMPLES: &str = "\
Examples:
  msbdl fit --modality image=image.npy --modality text=text.npy --atoms 60 --out model.safetensors
  msbdl fit --modality rna=rna.csv --modality protein=protein.csv --ids --atoms 40 --out m.safetensors
  msbdl fit --modality a=all.npz:a --modality b=all.npz:b --atoms 50 --preset paper --sigma0 a=1 \\
            --sigma0 b=1.5 --out paper.safetensors";

pub const PREDICT_EXAMPLES: &str = "\
Examples:
  msbdl predict --model model.safetensors --modality image=new.npy --modality text=new.csv \\
                --out predicted.csv
  msbdl predict --model model.safetensors --modality image=new.npy --out labels.npy";

pub const ENCODE_EXAMPLES: &str = "\
Examples:
  msbdl encode --model model.safetensors --modality image=new.npy --out codes.npz
  python -c \"import numpy; print(numpy.load('codes.npz')['mean.image'].shape)\"";

pub const SYNTH_EXAMPLES: &str = "\
Examples:
  msbdl synth --recipe bimodal --seed 1 --out synth
  msbdl synth --recipe trimodal --snr 30,20,10 --missing .2,0,.4 --samples 500 --seed 1 --out synth
  msbdl fit --modality mod1=synth/mod1.npy --modality mod2=synth/mod2.npy --atoms 50 --out m.safetensors
  msbdl recovery --model m.safetensors --truth synth";

/// What to know about files, before the examples.
pub fn with_files(examples: &str) -> String {
    format!("{FILES}\n\n{examples}")
}
