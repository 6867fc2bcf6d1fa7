//! Sorts failures into wrong input (exit code 2) and runs that went wrong (exit code 1).

use crate::read::BadInput;

/// Why the program ends without doing what was asked.
#[derive(Debug)]
pub enum Fail {
    /// The user can put it right: a file, a modality, an option.
    Input(String),
    /// The run itself failed: numerics, a full disk.
    Run(String),
}

pub type Result<T> = std::result::Result<T, Fail>;

impl Fail {
    pub fn input(text: impl Into<String>) -> Self {
        Fail::Input(text.into())
    }

    pub fn run(text: impl ToString) -> Self {
        Fail::Run(text.to_string())
    }

    pub fn code(&self) -> u8 {
        match self {
            Fail::Input(_) => 2,
            Fail::Run(_) => 1,
        }
    }

    /// The one line that goes to stderr.
    pub fn line(&self) -> String {
        let (Fail::Input(text) | Fail::Run(text)) = self;
        // File and modality names may hold line breaks, and the promise is one line.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("msbdl: {text}")
    }
}

impl From<anyhow::Error> for Fail {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<BadInput>() {
            Some(bad) => Fail::Input(bad.to_string()),
            None => Fail::Run(format!("{error:#}")),
        }
    }
}
