"""Holds several modalities of the same samples, in a form that scikit-learn can split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from msbdl._match import default_ids, match, sample_ids, with_defaults


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
    features : dict of str to ndarray of shape (n_features,)
        Names of the features, of modalities that have them: frames and AnnData.
    """

    ndim = 2
    index: NDArray[Any] | None
    features: dict[str, NDArray[Any]]
    _views: dict[str, Any]

    def __init__(self, views: Mapping[str, Any] | MultiView) -> None:
        if isinstance(views, MultiView):
            self._views, self.index = views._views, views.index
            self.features = views.features
            return
        if not isinstance(views, Mapping):
            kind = type(views).__name__
            raise TypeError(f"a MultiView is made of a dict from names to matrices, not of {kind}")
        if not views:
            raise ValueError("no modality was given")
        for name in views:
            if not isinstance(name, str):
                raise TypeError(f"names of modalities are text, not {name!r}")
            if not name:
                raise ValueError("a modality has an empty name")
        values = {name: matrix(name, given) for name, given in views.items()}
        ids = {name: sample_ids(name, given) for name, given in views.items()}
        defaults = {name: default_ids(given) for name, given in views.items()}
        self._views, self.index = match(values, with_defaults(ids, defaults))
        names = {name: feature_names(given) for name, given in views.items()}
        self.features = {name: each for name, each in names.items() if each is not None}

    @classmethod
    def _of(
        cls,
        views: dict[str, Any],
        index: NDArray[Any] | None,
        features: dict[str, NDArray[Any]] | None = None,
    ) -> MultiView:
        """Takes what has been checked before."""
        new = cls.__new__(cls)
        new._views, new.index = views, index
        new.features = {} if features is None else features
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
        if isinstance(key, slice):
            return self.rows(key)
        # NumPy takes no rows for floats.
        empty = isinstance(key, list) and not key
        return self.rows(np.atleast_1d(np.asarray(key, dtype=int if empty else None)))

    def rows(self, rows: slice | NDArray[Any]) -> MultiView:
        """Some samples of all modalities."""
        index = None if self.index is None else self.index[rows]
        views = {name: values[rows] for name, values in self._views.items()}
        return MultiView._of(views, index, self.features)

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
    if np.ma.is_masked(given):
        raise TypeError(f"modality '{name}' is masked; give rows of NaN for samples that lack it")
    if type(given).__name__ == "LazyFrame":
        raise TypeError(f"modality '{name}' is a LazyFrame; collect it first")
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


def feature_names(given: Any) -> NDArray[Any] | None:
    """Finds the names of the features of a frame or an AnnData; numbers are no names."""
    names = getattr(given, "var_names", None)
    names = getattr(given, "columns", None) if names is None else names
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.asarray(names, dtype=object)


def check_features(views: MultiView, known: Mapping[str, NDArray[Any]]) -> None:
    """Refuses modalities whose features are not those of the fit, or in another order."""
    for name, given in views.features.items():
        expected = known.get(name)
        # The number of features is checked elsewhere.
        if expected is None or len(given) != len(expected) or (given == expected).all():
            continue
        place = int(np.flatnonzero(given != expected)[0])
        raise ValueError(
            f"modality '{name}': the features must be those of the fit, in the same order, but "
            f"feature {place} is {given[place]!r} instead of {expected[place]!r}"
        )
