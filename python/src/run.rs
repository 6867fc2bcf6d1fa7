//! Fits on a thread of its own, so that Python stays responsive and can stop it at any time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use msbdl::{Config, Data, Facts, Next, Observer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::apart::POLL;
use super::error::{exception, panicked};
use super::model::Model;
use super::settings::Settings;
use super::task::{Given, Task};
use super::{Views, owned};

/// A fit under way.
#[pyclass(frozen, module = "msbdl._core")]
pub struct Run {
    names: Vec<String>,
    stop: Arc<AtomicBool>,
    link: Mutex<Link>,
}

/// This end of the line to the fit's thread.
struct Link {
    news: Receiver<News>,
    answers: Sender<Next>,
    /// The fit has come to its end, good or bad.
    ended: bool,
    model: Option<Model>,
}

enum News {
    Iteration(Facts),
    End(msbdl::Result<Model>),
}

/// The other end; tells of iterations only when somebody listens.
struct Teller {
    stop: Arc<AtomicBool>,
    line: Option<(Sender<News>, Receiver<Next>)>,
}

impl Observer for Teller {
    fn see(&mut self, facts: &Facts) -> Next {
        if self.stop.load(Ordering::Relaxed) {
            return Next::Stop;
        }
        let Some((news, answers)) = &self.line else { return Next::Continue };
        match news.send(News::Iteration(facts.clone())) {
            Ok(()) => answers.recv().unwrap_or(Next::Stop),
            Err(_) => Next::Stop,
        }
    }
}

#[pymethods]
impl Run {
    /// Starts the fit. With `tell`, every iteration waits for the word of `watch`.
    #[new]
    #[pyo3(signature = (views, center, settings, tell, task=None))]
    fn new(
        py: Python,
        views: Views,
        center: bool,
        settings: Settings,
        tell: bool,
        task: Option<(Given, Task)>,
    ) -> PyResult<Self> {
        let config = Config::try_from(settings)?;
        let task = task.map(|(labels, task)| Ok::<_, PyErr>((labels.checked()?, task.config())));
        let task = task.transpose()?;
        let views = owned(views);
        let data = py.detach(|| Data::new(views, center)).map_err(exception)?;
        let names = data.modalities().iter().map(|modality| modality.name().to_owned());
        let names = names.collect();
        let stop = Arc::new(AtomicBool::new(false));
        let (send_news, news) = channel();
        let (answers, receive_answers) = channel();
        let line = tell.then(|| (send_news.clone(), receive_answers));
        let mut teller = Teller { stop: Arc::clone(&stop), line };
        thread::spawn(move || {
            let model = match task {
                Some((labels, task)) => {
                    msbdl::fit_task(&data, &labels, &task, &config, &mut teller)
                }
                None => msbdl::fit(&data, &config, &mut teller),
            };
            // Nobody listens any more if the estimator is gone.
            drop(send_news.send(News::End(model.map(Model::new))));
        });
        Ok(Run { names, stop, link: Mutex::new(Link { news, answers, ended: false, model: None }) })
    }

    /// Waits for the end; `callback` gets the facts of each iteration and stops the run with True.
    #[pyo3(signature = (callback=None))]
    fn watch(&self, py: Python, callback: Option<Bound<PyAny>>) -> PyResult<()> {
        let end = self.listen(py, callback);
        if end.is_err() && !self.link().ended {
            self.stop.store(true, Ordering::Relaxed);
            // A callback that raised has not answered.
            let _ = self.link().answers.send(Next::Stop);
        }
        end
    }

    /// Whether `watch` ended before the fit did.
    #[getter]
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What has been learnt; after an early stop, at the end of the iteration that is under way.
    fn model(&self, py: Python) -> PyResult<Model> {
        self.listen(py, None)?;
        self.link().model.clone().ok_or_else(panicked)
    }
}

impl Run {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, py: Python, callback: Option<Bound<PyAny>>) -> PyResult<()> {
        loop {
            py.check_signals()?;
            let news = py.detach(|| {
                let link = self.link();
                (!link.ended).then(|| link.news.recv_timeout(POLL))
            });
            match news {
                None => return Ok(()),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    self.link().ended = true;
                    return Err(panicked());
                }
                Some(Ok(News::Iteration(facts))) => {
                    let next = match &callback {
                        Some(callback) => self.tell(callback, &facts)?,
                        None => Next::Stop,
                    };
                    let _ = self.link().answers.send(next);
                }
                Some(Ok(News::End(end))) => {
                    self.link().ended = true;
                    self.link().model = Some(end.map_err(exception)?);
                    return Ok(());
                }
            }
        }
    }

    fn tell(&self, callback: &Bound<PyAny>, facts: &Facts) -> PyResult<Next> {
        let by_name = |values: &[f64]| -> PyResult<Bound<PyDict>> {
            let dict = PyDict::new(callback.py());
            for (name, value) in self.names.iter().zip(values) {
                dict.set_item(name, value)?;
            }
            Ok(dict)
        };
        let dict = PyDict::new(callback.py());
        dict.set_item("iteration", facts.iteration)?;
        dict.set_item("stage", &facts.stage)?;
        dict.set_item("log_likelihood", facts.log_likelihood)?;
        dict.set_item("sigma", by_name(&facts.sigma)?)?;
        dict.set_item("beta", by_name(&facts.beta)?)?;
        dict.set_item("validation", facts.validation)?;
        dict.set_item("dictionary_change", by_name(&facts.dictionary_change)?)?;
        dict.set_item("atoms_cleaned", facts.atoms_cleaned)?;
        dict.set_item("columns_paired", facts.columns_paired)?;
        dict.set_item("e_steps", facts.e_steps)?;
        dict.set_item("progress", facts.progress)?;
        dict.set_item("seconds", facts.seconds)?;
        match callback.call1((dict,))?.is_truthy()? {
            true => Ok(Next::Stop),
            false => Ok(Next::Continue),
        }
    }
}
