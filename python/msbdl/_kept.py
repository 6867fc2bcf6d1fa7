"""Keeps labelled samples of all batches, as many as memory shall hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msbdl._multiview import MultiView

# Labelled samples that are kept for the read-out.
KEPT = 5000


@dataclass
class Kept:
    """Labelled samples of all batches: the first KEPT, then a uniform draw of that many.

    Labels are a column (classes, as places) or a table (tags).
    """

    views: dict[str, NDArray[np.float64]]
    labels: NDArray[np.float64]
    held: NDArray[np.bool_]
    # Labelled samples so far: by class, of which every so manieth is held back, and altogether.
    by_class: Counter[int] = field(default_factory=Counter)
    seen: int = 0
    # Which rows of the batches with names were held back.
    blocks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    # Whether something was learnt since the read-out was fitted.
    stale: bool = True

    @classmethod
    def nothing(cls, widths: dict[str, int], labels: NDArray[np.float64]) -> Kept:
        """No sample yet."""
        views = {name: np.empty((0, width)) for name, width in widths.items()}
        return cls(views, labels[:0].copy(), np.empty(0, dtype=bool))

    def hold(self, labels: NDArray[np.float64], share: float) -> NDArray[np.bool_]:
        """Chooses the labelled samples whose labels learning shall not see.

        Of every class (of tags: altogether) it is the same share, evenly spread; never the first.
        """
        counts = self.by_class.copy()
        held = np.zeros(len(labels), dtype=bool)
        for row, key in keys(labels):
            count = counts[key]
            counts[key] += 1
            held[row] = count > 0 and int((count + 1) * share + 0.5) > int(count * share + 0.5)
        return held

    def add(
        self,
        views: MultiView,
        labels: NDArray[np.float64],
        held: NDArray[np.bool_],
        seed: int,
    ) -> None:
        """Takes in the labelled ones of some samples."""
        self.by_class.update(key for _, key in keys(labels))
        rows = np.flatnonzero(~np.isnan(labels[:, 0]))
        numbers = self.seen + np.arange(len(rows))
        # Algorithm R: sample number n takes a random place out of n + 1, if that is one of ours.
        places = np.random.default_rng([seed, self.seen]).integers(numbers + 1)
        places = np.where(numbers < KEPT, numbers, places)
        self.seen += len(rows)
        size = min(self.seen, KEPT)
        taken = {int(place): row for place, row in zip(places, rows, strict=True) if place < KEPT}
        to, origin = np.array([*taken], int), np.array([*taken.values()], int)
        for name, old in self.views.items():
            new = np.full((size, old.shape[1]), np.nan)
            new[: len(old)] = old
            if name in views:
                part = views[name][origin]
                new[to] = part.toarray() if hasattr(part, "toarray") else part
            else:
                new[to] = np.nan
            self.views[name] = new
        self.labels = spread(self.labels, labels, to, origin, size)
        self.held = spread(self.held, held, to, origin, size)


def keys(labels: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Rows that have a label, with their class; of tags, nought."""
    for row in np.flatnonzero(~np.isnan(labels[:, 0])):
        yield int(row), int(labels[row, 0]) if labels.shape[1] == 1 else 0


def usable(
    labels: NDArray[np.float64], held: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Without the labels of classes of which none is shown."""
    if labels.shape[1] > 1:
        return labels, held
    there = np.isin(labels, labels[~held])
    return np.where(there, labels, np.nan), held & there[:, 0]


def spread(
    old: NDArray[Any], new: NDArray[Any], to: NDArray[Any], origin: NDArray[Any], size: int
) -> NDArray[Any]:
    """Rows of `new` in their places among those of `old`."""
    out = np.empty((size, *old.shape[1:]), dtype=old.dtype)
    out[: len(old)] = old
    out[to] = new[origin]
    return out


def as_labels(labels: NDArray[np.float64], names: Sequence[str]) -> Any:
    """Labels as the library takes them."""
    if labels.shape[1] > 1:
        return list(names), np.ascontiguousarray(labels)
    return [None if np.isnan(place) else names[int(place)] for place in labels[:, 0]]
