"""Shows what was learnt: attributes, codes of new samples, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from msbdl._arrays import dense, explained, join
from msbdl._codes import Codes
from msbdl._core import Model, Run
from msbdl._multiview import MultiView
from msbdl._threads import n_threads

Self = TypeVar("Self", bound="Fitted")
Answer = TypeVar("Answer")

# Samples coded between two looks at the keyboard; the library's own size, so that the bits agree.
AT_ONCE = 4096


class Fitted(BaseEstimator):  # type: ignore[misc]
    """Holds a model, or a fit that was interrupted and is about to have one."""

    n_jobs: int | None
    _learnt: Model | Run

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

    def _adopt(self: Self, model: Model) -> Self:
        """Becomes fitted with a model from a file."""
        self._learnt = model
        self.n_features_in_ = sum(len(mean) for mean in model.means)
        return self

    def _views(self, X: Any, *, fitting: bool) -> MultiView:
        raise NotImplementedError

    # -- attributes ------------------------------------------------------------------------

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
        """Writes the model's file, which the command ``msbdl`` reads as well.

        It holds what ``partial_fit`` needs to go on with the same bits.
        """
        self._model.save(path, samples=True)
