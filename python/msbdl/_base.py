"""Does what all estimators share: parameters, input, the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from msbdl._arrays import dense, explained
from msbdl._coerce import is_anndata, is_multimodal, multiview
from msbdl._core import Run
from msbdl._fitted import Fitted
from msbdl._match import listed
from msbdl._multiview import MultiView, check_features
from msbdl._progress import progress
from msbdl._settings import library_settings
from msbdl._warn import warn

Groups = Sequence[Mapping[str, Sequence[Any]]]
Callback = Callable[[dict[str, Any]], object]

# The name of the modality when X is one array.
ALONE = "X"
ADVICE = {
    "max-iterations": "max_iter={n_iter} was reached first; raise it, or leave it out",
    "not-settled": "the noise of some modality was still changing at the end; more samples or "
    "fewer atoms usually help (see history_['sigma'])",
}


class Base(Fitted):
    """Learns dictionaries; what is made of the codes is up to the classes below."""

    def __init__(
        self,
        n_atoms: int | Mapping[str, int] | None = None,
        *,
        preset: str = "auto",
        prior: str = "one-to-one",
        groups: Groups | None = None,
        root: str | None = None,
        max_leaves: int | None = None,
        schedule: str | None = None,
        batch_size: int | None = None,
        posterior: str | None = None,
        sigma0: float | Mapping[str, float] | None = None,
        sigma_inf: float | None = None,
        alpha: float | None = None,
        max_iter: int | None = None,
        center: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.preset = preset
        self.prior = prior
        self.groups = groups
        self.root = root
        self.max_leaves = max_leaves
        self.schedule = schedule
        self.batch_size = batch_size
        self.posterior = posterior
        self.sigma0 = sigma0
        self.sigma_inf = sigma_inf
        self.alpha = alpha
        self.max_iter = max_iter
        self.center = center
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # -- fitting ---------------------------------------------------------------------------

    def _fit(self, views: MultiView, task: tuple[Any, Mapping[str, Any]] | None = None) -> None:
        """Fits; `task` are labels and how they take part.

        When Ctrl-C or an exception of the callback ends it, what was learnt stays.
        """
        tell = bool(self.verbose) or self.callback is not None
        with explained(views):
            settings = library_settings(self, views)
            run = Run(dense(views), bool(self.center), settings, tell, task)
        bar = progress() if self.verbose else None
        try:
            run.watch(self._listener(bar))
        except BaseException:
            if run.stopped:
                self._learnt = run
            raise
        finally:
            if bar is not None:
                bar.close(complete=not run.stopped)
        self._learnt = run.model()
        self._warn()

    def _listener(self, bar: Any) -> Callback | None:
        listeners = [each for each in (bar, self.callback) if each is not None]
        if not listeners:
            return None
        # The bar answers None; the callback's answer decides.
        return lambda facts: [listener(facts) for listener in listeners][-1]

    def _warn(self) -> None:
        advice = ADVICE.get(self.stop_reason_)
        if advice is not None:
            text = "the fit has not converged: " + advice.format(n_iter=self.n_iter_)
            warn(text, ConvergenceWarning)

    # -- input -----------------------------------------------------------------------------

    def _views(self, X: Any, *, fitting: bool) -> MultiView:
        """Makes a MultiView of X, and checks it against the model unless this is to be one."""
        alone = ALONE if fitting else self._model.names[0]
        if is_anndata(X):
            X = {alone: X}
        if is_multimodal(X):
            views = multiview(X, None if fitting else self._model.names)
            if fitting:
                self.n_features_in_, self._features = views.shape[1], views.features
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            check_features(views, getattr(self, "_features", {}))
            return views
        if not fitting and len(self._model.names) > 1:
            names = self._model.names
            raise ValueError(
                f"X is one array, but the model has {len(names)} modalities: {listed(names)}; "
                "give those that are there by name"
            )
        if fitting:
            self._features = {}
        array = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if fitting else 1,
        )
        return MultiView._of({alone: array}, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
