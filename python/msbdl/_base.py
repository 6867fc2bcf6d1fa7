"""Does what all estimators share: settings, input, the fit, codes, files."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from msbdl._codes import Codes
from msbdl._coerce import is_multimodal, multiview
from msbdl._core import Model, Run
from msbdl._multiview import MultiView, listed
from msbdl._progress import progress
from msbdl._threads import n_threads

Groups = Sequence[Mapping[str, Sequence[Any]]]
Callback = Callable[[dict[str, Any]], object]
Self = TypeVar("Self", bound="Base")
Answer = TypeVar("Answer")

# The name of the modality when X is one array.
ALONE = "X"
# Samples coded between two looks at the keyboard; the library's own size, so that the bits agree.
AT_ONCE = 4096
# Samples per atom below which the default number of atoms never goes.
SAMPLES_PER_ATOM = 10

ADVICE = {
    "max-iterations": "max_iter={n_iter} was reached first; raise it, or leave it out",
    "not-settled": "the noise of some modality was still changing at the end; more samples or "
    "fewer atoms usually help (see history_['sigma'])",
}


class Base(BaseEstimator):  # type: ignore[misc]
    """Learns dictionaries; what is made of the codes is up to the classes below."""

    _learnt: Model | Run

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

    def _fit(self, views: MultiView, task: Mapping[str, Any] | None = None) -> None:
        """Fits; when Ctrl-C or the callback's exception ends it, what was learnt stays."""
        bar = progress() if self.verbose else None
        callback = self._listener(bar)
        with explained(views):
            run = Run(dense(views), self.center, self._settings(views), callback is not None, task)
        try:
            run.watch(callback)
        except BaseException:
            if run.stopped:
                self._learnt = run
            raise
        finally:
            if bar is not None:
                bar.close(complete=not run.stopped)
        self._learnt = run.model()
        self._warn()

    def _forget(self) -> None:
        """Drops the sums of earlier batches."""
        for name in ("_stream", "_kept", "_source"):
            if hasattr(self, name):
                delattr(self, name)

    def _listener(self, bar: Any) -> Callback | None:
        listeners = [each for each in (bar, self.callback) if each is not None]
        if not listeners:
            return None
        # The bar answers None; the callback's answer decides.
        return lambda facts: [listener(facts) for listener in listeners][-1]

    def _settings(self, views: MultiView) -> dict[str, Any]:
        """The library's settings, with types checked; values it checks itself."""
        for name in ("batch_size", "max_iter", "max_leaves"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, (int, np.integer), min_val=1)
        for name in ("sigma_inf", "alpha"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, (float, int, np.number))
        for name in ("preset", "prior", "schedule", "posterior", "root"):
            given = getattr(self, name)
            needed = name in ("preset", "prior")
            if not isinstance(given, str) and (needed or given is not None):
                raise TypeError(f"{name} must be text, not {given!r}")
        return {
            "n_atoms": self._n_atoms(views),
            "preset": self.preset,
            "prior": self.prior,
            "groups": None if self.groups is None else json.dumps(self.groups),
            "root": self.root,
            "max_leaves": self.max_leaves,
            "schedule": self.schedule,
            "batch_size": self.batch_size,
            "posterior": self.posterior,
            "sigma0": each_checked("sigma0", self.sigma0, (float, int, np.number)),
            "sigma_inf": self.sigma_inf,
            "alpha": self.alpha,
            "max_iter": self.max_iter,
            "seed": seed(self.random_state),
            "threads": n_threads(self.n_jobs),
        }

    def _n_atoms(self, views: MultiView) -> Any:
        if self.n_atoms is None:
            fewest = min(values.shape[1] for _, values in views.items())
            return max(1, min(2 * fewest, len(views) // SAMPLES_PER_ATOM))
        return each_checked("n_atoms", self.n_atoms, (int, np.integer), min_val=1)

    def _warn(self) -> None:
        advice = ADVICE.get(self.stop_reason_)
        if advice is not None:
            text = "the fit has not converged: " + advice.format(n_iter=self.n_iter_)
            warnings.warn(text, ConvergenceWarning, stacklevel=4)

    # -- input -----------------------------------------------------------------------------

    def _views(self, X: Any, *, fitting: bool) -> MultiView:
        """Makes a MultiView of X, and checks it against the model unless this is to be one."""
        if is_multimodal(X):
            views = multiview(X, None if fitting else self._model.names)
            if fitting:
                self.n_features_in_ = views.shape[1]
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
            return views
        name = ALONE
        if not fitting:
            names = self._model.names
            if len(names) > 1:
                raise ValueError(
                    f"X is one array, but the model has {len(names)} modalities: {listed(names)}; "
                    "give those that are there by name"
                )
            name = names[0]
        array = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if fitting else 1,
        )
        return MultiView._of({name: array}, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- what was learnt -------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learnt")

    @property
    def _model(self) -> Model:
        check_is_fitted(self)
        if isinstance(self._learnt, Run):
            # An interrupted fit ends with the iteration that was under way.
            self._learnt = self._learnt.model()
        return self._learnt

    def __getstate__(self) -> Any:
        if hasattr(self, "_learnt"):
            self._learnt = self._model
        return super().__getstate__()

    @property
    def modalities_(self) -> list[str]:
        """Names of the modalities, in the order of the columns of the codes."""
        return self._model.names

    @property
    def dictionaries_(self) -> dict[str, NDArray[np.float64]]:
        """Dictionaries by modality, (n_features, n_atoms), with unit columns."""
        return dict(zip(self._model.names, self._model.dictionaries, strict=True))

    @property
    def groups_(self) -> list[dict[str, list[Any]]]:
        """Branches: for each, the atoms of every modality that belong together.

        An atom is its number, or (in trees of more than two levels) a dict of ``atom`` and
        ``under``, the modality and number of the atom that it hangs under.
        """
        groups: list[dict[str, list[Any]]] = json.loads(self._model.groups)
        return groups

    @property
    def means_(self) -> dict[str, NDArray[np.float64]]:
        """Learnt means by modality, (n_features,)."""
        return dict(zip(self._model.names, self._model.means, strict=True))

    @property
    def noise_variances_(self) -> dict[str, float]:
        """Noise variances by modality, in the units of the data."""
        return dict(zip(self._model.names, self._model.noise_variances, strict=True))

    @property
    def usage_(self) -> NDArray[np.float64]:
        """Share of the training samples that use each atom (with trees: branch), (n_atoms,)."""
        return self._model.usage

    @property
    def variance_explained_(self) -> dict[str, float]:
        """Share of the training samples' variance that the codes explain, by modality."""
        return dict(zip(self._model.names, self._model.variance_explained, strict=True))

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """The facts of every iteration.

        ``stage``, ``log_likelihood``, ``e_steps``, ``atoms_cleaned`` and ``columns_paired`` have
        the shape (n_iter,); ``sigma`` (noise standard deviations, in the units of the data) and
        ``dictionary_change`` have the shape (n_iter, n_modalities).
        """
        return {name: np.asarray(values) for name, values in self._model.history.items()}

    @property
    def stop_reason_(self) -> str:
        """One of converged, not-settled, max-iterations, interrupted."""
        return self._model.stop_reason

    @property
    def converged_(self) -> bool:
        """Whether the noise of every modality had settled."""
        return self.stop_reason_ == "converged"

    @property
    def n_iter_(self) -> int:
        """Iterations of the fit."""
        return self._model.n_iter

    # -- codes -----------------------------------------------------------------------------

    def encode(self, X: Any) -> Codes:
        """Codes samples from any of the modalities.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            Samples. Modalities may be left out (in a list: None), or be NaN in some rows.

        Returns
        -------
        Codes
            Posterior means and standard deviations, log-evidence and gamma.
        """
        model = self._model
        views = self._views(X, fitting=False)
        blocks = self._in_blocks(views, model.encode)
        parts = [{part[0]: part[1:] for part in block[2]} for block in blocks]
        names = list(parts[0])
        mean, variance, reconstruction = (
            {name: join([part[name][k] for part in parts]) for name in names} for k in range(3)
        )
        return Codes(
            mean=mean,
            std={name: np.sqrt(np.maximum(each, 0.0)) for name, each in variance.items()},
            reconstruction=reconstruction,
            gamma=join([block[0] for block in blocks]),
            log_evidence=join([block[1] for block in blocks]),
            index=views.index,
        )

    def _in_blocks(self, views: MultiView, work: Callable[[Any, int], Answer]) -> list[Answer]:
        """Works on some samples at a time, so that memory is bounded and Ctrl-C heard."""
        threads, answers = n_threads(self.n_jobs), []
        for start in range(0, max(len(views), 1), AT_ONCE):
            rows = views.rows(slice(start, start + AT_ONCE))
            with explained(views, start):
                answers.append(work(dense(rows), threads))
        return answers

    def _stacked(self, codes: Codes) -> NDArray[np.float64]:
        """Codes of all modalities side by side; nought for those that were not given."""
        shapes = {name: (len(codes.gamma), d.shape[1]) for name, d in self.dictionaries_.items()}
        given = codes.mean
        return np.hstack([given.get(name, np.zeros(shape)) for name, shape in shapes.items()])

    # -- files -----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model's file, which the command ``msbdl`` reads as well."""
        self._model.save(path)

    def _adopt(self: Self, model: Model) -> Self:
        """Becomes fitted with a model from a file."""
        self._learnt = model
        self.n_features_in_ = sum(len(mean) for mean in model.means)
        return self


def dense(views: MultiView) -> list[tuple[str, NDArray[np.float64]]]:
    """Modalities as the library takes them."""
    return [(name, to_dense(values)) for name, values in views.items()]


def to_dense(values: Any) -> NDArray[np.float64]:
    """C-ordered float64; no copy of what is that already."""
    values = values.toarray() if issparse(values) else values
    return np.ascontiguousarray(values, dtype=np.float64)


def join(blocks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """One array of several; no copy of a single one."""
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def each_checked(name: str, given: Any, kind: Any, min_val: Any = None) -> Any:
    """Checks a value or a dict of values by modality."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        for modality, value in given.items():
            check_scalar(value, f"{name} of '{modality}'", kind, min_val=min_val)
        return dict(given)
    return check_scalar(given, name, kind, min_val=min_val)


def seed(random_state: Any) -> int:
    """A seed of the library's random numbers; a whole number is one already."""
    if isinstance(random_state, (int, np.integer)):
        return int(check_scalar(int(random_state), "random_state", int, min_val=0))
    return int(check_random_state(random_state).randint(2**31 - 1))


@contextmanager
def explained(views: MultiView, start: int = 0) -> Iterator[None]:
    """Names the sample in the library's errors; `start` is the first row that it was given."""
    try:
        yield
    except ValueError as error:
        found = re.search(r"row (\d+)", str(error))
        if found is None:
            raise
        row = start + int(found[1])
        place = f"row {row}" if views.index is None else f"sample {views.index[row]!r}"
        raise ValueError(str(error).replace(found[0], place, 1)) from None
