//! Works on a thread of its own: Ctrl-C is heard meanwhile, and no panic reaches Python.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use super::error::panicked;

/// How long a pressed Ctrl-C waits at most.
pub const POLL: Duration = Duration::from_millis(50);

/// The answer of `work`. After Ctrl-C nobody waits for it any more, and it is dropped.
pub fn apart<T: Send + 'static>(
    py: Python,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (answer, answers) = channel();
    // Nobody listens any more if Ctrl-C was pressed.
    thread::spawn(move || drop(answer.send(work())));
    let answers = Mutex::new(answers);
    loop {
        py.check_signals()?;
        let news =
            py.detach(|| answers.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL));
        match news {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(panicked()),
        }
    }
}
