//! Runs a fit that can be watched on a terminal and stopped with Ctrl-C.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use msbdl::{Config, Data, Facts, Labels, Model, Next, Observer, TaskConfig};

use crate::show::significant;

/// Length of the bar; its unit has no meaning.
const FULL: f64 = 1000.0;
/// The shell's code for an end by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Fits; the first Ctrl-C ends the fit early, the second ends the program.
pub fn fit(
    data: &Data,
    task: Option<(&Labels, &TaskConfig)>,
    config: &Config,
    quiet: bool,
) -> msbdl::Result<(Model, Duration)> {
    let mut watch = Watch {
        stop: stop_on_interrupt(quiet),
        bar: (!quiet && stderr().is_terminal()).then(bar),
        start: Instant::now(),
    };
    let model = match task {
        Some((labels, task)) => msbdl::fit_task(data, labels, task, config, &mut watch),
        None => msbdl::fit(data, config, &mut watch),
    };
    if let Some(bar) = &watch.bar {
        bar.finish_and_clear();
    }
    Ok((model?, watch.start.elapsed()))
}

struct Watch {
    stop: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Observer for Watch {
    fn see(&mut self, facts: &Facts) -> Next {
        if let Some(bar) = &self.bar {
            let share = facts.progress.clamp(0.0, 1.0);
            bar.set_position((share * FULL) as u64);
            bar.set_message(self.message(facts, share));
        }
        match self.stop.load(Ordering::Relaxed) {
            true => Next::Stop,
            false => Next::Continue,
        }
    }
}

impl Watch {
    fn message(&self, facts: &Facts, share: f64) -> String {
        let elapsed = self.start.elapsed().as_secs_f64();
        // The first iterations say little about the rest.
        let left = match share > 0.01 {
            true => duration(elapsed * (1.0 - share) / share),
            false => "?".to_owned(),
        };
        let noise: Vec<_> = facts.sigma.iter().map(|sigma| significant(*sigma)).collect();
        format!(
            "{left} left, {}, iteration {}, noise {}",
            facts.stage,
            facts.iteration,
            noise.join(" ")
        )
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(FULL as u64);
    if let Ok(style) = ProgressStyle::with_template("[{bar:24}] {percent:>3} %  {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Seconds in words that are short enough for a progress line.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

fn stop_on_interrupt(quiet: bool) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let set = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        if !quiet {
            eprintln!("\nmsbdl: stopping after this iteration; Ctrl-C again quits at once");
        }
    });
    // Without the handler Ctrl-C ends the program, which is no reason not to run.
    drop(set);
    stop
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts are in the user's units, and are shown as they are.
    #[test]
    fn the_line_shows_the_facts() {
        let watch = Watch { stop: Arc::default(), bar: None, start: Instant::now() };
        let facts = Facts {
            iteration: 7,
            stage: "temper".into(),
            log_likelihood: -1.0,
            sigma: vec![0.25, 3000.0],
            beta: Vec::new(),
            validation: None,
            dictionary_change: vec![0.0; 2],
            atoms_cleaned: 0,
            columns_paired: 0,
            e_steps: 7.0,
            progress: 0.0,
            seconds: 0.0,
        };
        assert_eq!(watch.message(&facts, 0.0), "? left, temper, iteration 7, noise 0.2500 3000");
    }
}
