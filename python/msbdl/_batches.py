"""Learns classes and tags from batches as they come."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from msbdl._base import Base, dense, explained
from msbdl._core import Stream
from msbdl._kept import Kept, as_labels, usable
from msbdl._multiview import MultiView
from msbdl._threads import n_threads

Self = TypeVar("Self", bound="Batches")


class Batches(Base):
    """Adds partial_fit to an estimator that learns labels."""

    classes_: NDArray[Any]
    validation: float
    nu: float | None
    _stream: Stream
    _kept: Kept
    # The samples of a fit and their labels, until a batch comes.
    _source: tuple[MultiView, Any]

    def partial_fit(self: Self, X: Any, y: Any, classes: Any = None, *, block: Any = None) -> Self:
        """Learns from a batch of samples and their labels, and goes on from what is there.

        The first batch of all is fitted. Every later one takes one step of incremental EM with
        its labels, as in ``MSBDL.partial_fit``. The read-out needs codes that the dictionaries as
        they stand make of labelled samples; so 5000 of those of all batches are kept (when there
        are more, a uniform draw of them), and it is fitted anew when it is next asked for.
        After ``fit``, its samples count as the first batch. Pickles made after ``partial_fit``
        go on with the same bits; files, and pickles of fits, keep no samples, so there is no going
        on from them.

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
        if not first and not hasattr(self, "_stream"):
            self._resume()
        views, y = self._matched(X, y, fitting=first)
        check_consistent_length(views, y)
        labels = self._places(y, classes)
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation must be at least 0 and below 1, not {self.validation}")
        name = None if block is None else str(block)
        if first:
            kept = Kept.nothing(widths(views), labels)
            held = kept.hold(labels, self.validation)
            self._fit_first(views, *usable(labels, held))
            self._take_in(self._new_stream(), kept, views, labels, held, name)
        else:
            kept = self._kept
            earlier = None if name is None else kept.blocks.get(name)
            held = kept.hold(labels, self.validation) if earlier is None else earlier
            self._take_in(self._stream, kept, views, labels, held, name)
        return self

    def _fit_first(
        self, views: MultiView, labels: NDArray[np.float64], held: NDArray[np.bool_]
    ) -> None:
        if labels.shape[1] == 1 and len(np.unique(labels[~np.isnan(labels)])) < 2:
            raise ValueError("y: the first batch must have samples of at least two classes")
        self._fit(views, self._lesson(labels, held))

    def _resume(self) -> None:
        """Makes the samples of ``fit`` the first batch."""
        if not hasattr(self, "_source"):
            raise ValueError(
                "partial_fit cannot go on: neither files nor pickles of fits keep the labelled "
                "samples that the read-out would need"
            )
        views, y = self._source
        labels = self._places(y, None)
        held = np.zeros(len(views), dtype=bool)
        held[Stream.held(self._lesson(labels, float(self.validation)), self._model.seed)] = True
        kept = Kept.nothing(widths(views), labels)
        self._take_in(self._new_stream(), kept, views, labels, held, None)
        del self._source

    def _new_stream(self) -> Stream:
        stream = Stream(self._model, self.center, resume=False)
        stream.teach(self._names, self.nu)
        return stream

    def _take_in(
        self,
        stream: Stream,
        kept: Kept,
        views: MultiView,
        labels: NDArray[np.float64],
        held: NDArray[np.bool_],
        name: str | None,
    ) -> None:
        """Takes a step with a batch, and keeps its labelled samples if they are new."""
        taught: Any = None
        if not np.isnan(labels).all():
            given, rows = as_labels(labels, self._names), np.flatnonzero(held).tolist()
            taught = (given if labels.shape[1] > 1 else (self._names, given)), rows
        with explained(views):
            stream.step(dense(views), name, n_threads(self.n_jobs), taught)
        if name is None or name not in kept.blocks:
            kept.add(views, labels, held, self._model.seed)
            if name is not None:
                kept.blocks[name] = held
        kept.stale = True
        self._stream, self._kept, self._learnt = stream, kept, stream.model()

    def _lesson(
        self, labels: NDArray[np.float64], held: NDArray[np.bool_] | float
    ) -> dict[str, Any]:
        """What the library is told of labels; `held` are rows, or a share of them."""
        rows = held if isinstance(held, float) else np.flatnonzero(held).tolist()
        return {**self._task(), "labels": as_labels(labels, self._names), "validation": rows}

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self.classes_]

    def _fit_read_out(self) -> None:
        """Fits the read-out for what batches have taught since it was last fitted."""
        if not hasattr(self, "_kept") or not self._kept.stale:
            return
        lesson = self._lesson(*usable(self._kept.labels, self._kept.held))
        self._stream.fit_read_out([*self._kept.views.items()], lesson, n_threads(self.n_jobs))
        self._learnt, self._kept.stale = self._stream.model(), False

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_source"}

    # -- what the estimator does -------------------------------------------------------------

    def _task(self) -> dict[str, Any]:
        raise NotImplementedError

    def _matched(self, X: Any, y: Any, *, fitting: bool) -> tuple[MultiView, Any]:
        raise NotImplementedError

    def _places(self, y: Any, classes: Any) -> NDArray[np.float64]:
        raise NotImplementedError


def widths(views: MultiView) -> dict[str, int]:
    """Features of each modality."""
    return {name: values.shape[1] for name, values in views.items()}
