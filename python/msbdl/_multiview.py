"""Holds several modalities of the same samples, in a form that scikit-learn can split."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array


class SampleMismatchWarning(UserWarning):
    """Some samples lack a modality in which their ids do not occur."""


class MultiView:
    """Several modalities of the same samples.

    It has a length, a shape and rows, so that ``train_test_split``, ``cross_val_score``,
    ``GridSearchCV``, ``Pipeline`` and ``learning_curve`` of scikit-learn take it as they take an
    array.

    Parameters
    ----------
    views : mapping of str to array-like of shape (n_samples, n_features)
        The modalities by name: arrays, SciPy sparse matrices, pandas or polars frames, AnnData.
        A row of NaN is a sample that lacks the modality. Frames whose ids (the index) differ are
        brought to the union of their samples.

    Attributes
    ----------
    names : list of str
    shape : tuple (n_samples, n_features of all modalities)
    index : ndarray of shape (n_samples,) or None
        Sample ids, when a modality had any.
    """

    ndim = 2

    def __init__(self, views: Mapping[str, Any]) -> None:
        if not views:
            raise ValueError("no modality was given")
        for name in views:
            if not isinstance(name, str):
                raise TypeError(f"names of modalities are text, not {name!r}")
        values = {name: matrix(name, given) for name, given in views.items()}
        ids = {name: sample_ids(name, given) for name, given in views.items()}
        self._views, self.index = match(values, ids)

    @classmethod
    def _of(cls, views: dict[str, Any], index: NDArray[Any] | None) -> MultiView:
        """Takes what has been checked before."""
        new = cls.__new__(cls)
        new._views, new.index = views, index
        return new

    @property
    def names(self) -> list[str]:
        """Names of the modalities."""
        return list(self._views)

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, and features of all modalities together."""
        widths = [values.shape[1] for values in self._views.values()]
        return next(iter(self._views.values())).shape[0], sum(widths)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Gives a modality by name, or some samples of all by a slice, a mask or numbers."""
        if isinstance(key, str):
            return self._views[key]
        if isinstance(key, tuple):
            # scikit-learn asks for X[rows, ...]; columns have no meaning here.
            if len(key) != 2 or not (key[1] is Ellipsis or key[1] == slice(None)):
                raise IndexError("a MultiView is indexed by a name or by rows")
            key = key[0]
        return self.rows(key if isinstance(key, slice) else np.atleast_1d(np.asarray(key)))

    def rows(self, rows: slice | NDArray[Any]) -> MultiView:
        """Some samples of all modalities."""
        index = None if self.index is None else self.index[rows]
        return MultiView._of({name: values[rows] for name, values in self._views.items()}, index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __contains__(self, name: object) -> bool:
        return name in self._views

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names with values."""
        return iter(self._views.items())

    def missing(self) -> NDArray[np.bool_]:
        """Shows which samples (rows) lack which modalities (columns)."""
        return np.column_stack([absent(values) for values in self._views.values()])

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "a MultiView is not one array; take one modality by name, or apply a transformer to "
            "each modality with PerView"
        )

    def __repr__(self) -> str:
        lacking = self.missing().sum(axis=0)
        parts = [
            f"{name} {values.shape[1]} features" + (f", {lack} missing" if lack else "")
            for (name, values), lack in zip(self._views.items(), lacking, strict=True)
        ]
        return f"MultiView({len(self)} samples: {'; '.join(parts)})"


def matrix(name: str, given: Any) -> Any:
    """Makes a numeric matrix of what was given; arrays of floats are not copied."""
    if hasattr(given, "obs_names") and hasattr(given, "X"):
        given = given.X
    if given is None:
        raise ValueError(f"modality '{name}' is None; leave it out, or give rows of NaN")
    try:
        return check_array(
            given,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (TypeError, ValueError) as error:
        # numpy's subclasses take other arguments.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"modality '{name}': {error}") from error


def absent(values: Any) -> NDArray[np.bool_]:
    """Shows which rows are NaN throughout."""
    if issparse(values):
        return np.zeros(values.shape[0], dtype=bool)
    # The first column tells nearly everything at a fraction of the cost.
    rows = np.isnan(values[:, 0]) if values.shape[1] else np.zeros(len(values), dtype=bool)
    rows[rows] = np.isnan(values[rows]).all(axis=1)
    return rows


def sample_ids(name: str, given: Any) -> NDArray[Any] | None:
    """Finds the sample ids of a frame or an AnnData; a default index is none."""
    if hasattr(given, "obs_names"):
        index = given.obs_names
    elif hasattr(given, "iloc"):
        index = given.index
        if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
            return None
    else:
        return None
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        place = name if name == "y" else f"modality '{name}'"
        raise ValueError(f"{place}: the sample id {twice!r} occurs more than once")
    return np.asarray(index, dtype=object)


def match(
    values: dict[str, Any], ids: Mapping[str, NDArray[Any] | None], *, quiet: bool = False
) -> tuple[dict[str, Any], NDArray[Any] | None]:
    """Brings modalities with ids to the union of their samples, in order of first appearance."""
    with_ids = {name: each for name, each in ids.items() if each is not None}
    if not with_ids:
        same_length(values)
        return values, None
    first_name, first = next(iter(with_ids.items()))
    if all(np.array_equal(first, each) for each in with_ids.values()):
        same_length(values)
        return values, first
    without = [name for name in values if name not in with_ids]
    if without:
        raise ValueError(
            f"modality '{without[0]}' has no sample ids, and those of "
            f"{listed(with_ids)} differ: there is nothing to match it by"
        )
    place: dict[Any, int] = {}
    for each in with_ids.values():
        for sample in each:
            place.setdefault(sample, len(place))
    rows = {name: np.array([place[x] for x in each], int) for name, each in with_ids.items()}
    holders = np.bincount(np.concatenate(list(rows.values())), minlength=len(place))
    for name, own in rows.items():
        if len(own) and (holders[own] == 1).all():
            raise ValueError(
                f"modality '{name}': none of its sample ids occurs in another modality "
                f"(for example {with_ids[name][0]!r}; {first[0]!r} in '{first_name}')"
            )
    lacking = {name: len(place) - len(own) for name, own in rows.items() if len(own) < len(place)}
    if lacking and not quiet:
        told = ", ".join(f"{count} lack '{name}'" for name, count in lacking.items())
        warnings.warn(
            f"{len(place)} samples matched by id: {told}", SampleMismatchWarning, stacklevel=4
        )
    spread = {name: spread_rows(values[name], own, len(place)) for name, own in rows.items()}
    return spread, np.fromiter(place, dtype=object, count=len(place))


def spread_rows(values: Any, rows: NDArray[np.int_], count: int) -> NDArray[Any]:
    """Puts rows in their places among `count`; the others are NaN."""
    values = values.toarray() if issparse(values) else values
    out = np.full((count, values.shape[1]), np.nan, dtype=values.dtype)
    out[rows] = values
    return out


def same_length(values: Mapping[str, Any]) -> None:
    """Refuses modalities of different numbers of samples."""
    first = next(iter(values))
    expected = values[first].shape[0]
    for name, each in values.items():
        if each.shape[0] != expected:
            raise ValueError(
                f"modality '{name}' has {each.shape[0]} samples, but modality '{first}' has "
                f"{expected}"
            )


def listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    """Names in quotes, with commas."""
    return ", ".join(f"'{name}'" for name in names)
