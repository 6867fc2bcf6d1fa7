"""Learns classes and tags from batches as they come."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from msbdl._arrays import dense, explained
from msbdl._base import Base
from msbdl._core import Stream
from msbdl._labels import as_labels, name_type
from msbdl._multiview import MultiView
from msbdl._settings import task_settings
from msbdl._threads import n_threads

Self = TypeVar("Self", bound="Batches")


class Source(NamedTuple):
    """The samples of a fit and their labels, for a batch that may come after it."""

    views: MultiView
    labels: NDArray[np.float64]
    # Rows whose labels were held back; None if they were drawn by the seed.
    held: list[int] | None


class Batches(Base):
    """Adds partial_fit to an estimator that learns labels."""

    classes_: NDArray[Any]
    _source: Source
    # Whether something was learnt since the read-out was fitted.
    _stale: bool

    def partial_fit(self: Self, X: Any, y: Any, classes: Any = None, *, block: Any = None) -> Self:
        """Learns from a batch of samples and their labels, and goes on from what is there.

        The first batch of all is fitted. Every later one takes one step of incremental EM with
        its labels, as in ``MSBDL.partial_fit``; after ``fit``, its samples count as the first
        batch. The read-out needs codes that the dictionaries as they stand make of labelled
        samples; so 5000 of those of all batches are kept (when there are more, a uniform draw of
        them), and it is fitted anew when it is next asked for. Pickles made after ``partial_fit``
        hold these samples, and so do files that are saved with ``samples=True``: from them learning
        goes on with the same bits. From pickles of fits and from other files it cannot go on.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            Samples; as for ``encode``, modalities may be missing.
        y : array-like of shape (n_samples,)
            As for ``fit``. Of the classes that take part, the first batch must have two.
        classes : array-like of shape (n_classes,), default=None
            All classes that may come; needed in the first call. A class that has not come yet has
            the probability nought.
        block : str or int, default=None
            The name of the batch if it will come again, as in ``MSBDL.partial_fit``.
        """
        first = not hasattr(self, "_learnt")
        views, y = self._matched(X, y, fitting=first)
        check_consistent_length(views, y)
        labels = self._places(y, classes)
        task_settings(self)  # checks them
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must be at least 0 and below 1, not {self.validation}")
        stream = self._first(views, labels) if first else self._resumed()
        told = None
        if not np.isnan(labels).all():
            told = as_labels(labels, self._names, among=stream.labels), self.validation
        with explained(views):
            name = None if block is None else str(block)
            stream.step(dense(views), name, n_threads(self.n_jobs), told)
        self._take(stream)
        self._stale = True
        return self

    def _fit_source(self, source: Source, task: dict[str, Any]) -> None:
        """Fits; when it is interrupted, or the batch after it, the next one goes on from there."""
        before = getattr(self, "_learnt", None)
        try:
            self._fit(source.views, (as_labels(source.labels, self._names), task))
        finally:
            if getattr(self, "_learnt", None) is not before:
                self._source, self._stale = source, False

    def _first(self, views: MultiView, labels: NDArray[np.float64]) -> Stream:
        """Fits the first batch of all."""
        if labels.shape[1] == 1 and len(np.unique(labels[~np.isnan(labels)])) < 2:
            raise ValueError("y: the first batch must have samples of at least two classes")
        names = self._names
        held = Stream.held_first(as_labels(labels, names, among=names), self.validation)
        self._fit_source(Source(views, labels, held), {**task_settings(self), "validation": held})
        stream = Stream.start(self._model, bool(self.center))
        stream.teach(names, self.nu)
        return stream

    def _resumed(self) -> Stream:
        """Goes on; the samples of a fit become the first batch."""
        stream = Stream.resume(self._model)
        if not hasattr(self, "_source"):
            return stream
        views, labels, held = self._source
        given = as_labels(labels, self._names, among=stream.labels)
        if held is None:
            held = Stream.held(given, task_settings(self), self._model.seed)
        stream.keep(dense(views), given, held)
        return stream

    def _take(self, stream: Stream) -> None:
        """Takes over what was learnt, with the samples that were kept."""
        self._learnt = stream.model()
        if hasattr(self, "_source"):
            del self._source

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self.classes_]

    def _fit_read_out(self) -> None:
        """Fits the read-out for what batches have taught since it was last fitted."""
        if getattr(self, "_stale", False):
            stream = Stream.resume(self._model)
            stream.fit_read_out(task_settings(self), n_threads(self.n_jobs))
            self._learnt, self._stale = stream.model(), False

    def save(self, path: str | PathLike[str], *, samples: bool = False) -> None:
        """Writes the model's file, which the command ``msbdl`` reads as well.

        Parameters
        ----------
        path : path-like
        samples : bool, default=False
            Also write the labelled samples (at most 5000) without which ``partial_fit`` cannot go
            on from the file. Whoever has the file has them too.
        """
        if samples:
            self._take(self._resumed())
        self._fit_read_out()
        self._model.save(path, samples=samples, name_type=name_type(self.classes_))

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_source"}

    # -- what the estimator does -------------------------------------------------------------

    validation: float
    nu: float | None

    def _matched(self, X: Any, y: Any, *, fitting: bool) -> tuple[MultiView, Any]:
        raise NotImplementedError

    def _places(self, y: Any, classes: Any) -> NDArray[np.float64]:
        raise NotImplementedError
