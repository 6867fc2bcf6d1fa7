"""Applies a scikit-learn transformer to each modality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from msbdl._coerce import is_multimodal, multiview
from msbdl._match import listed
from msbdl._multiview import MultiView, absent, check_features


class PerView(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Applies a transformer to each modality on its own.

    Rows of NaN (samples that lack the modality) are neither learnt from nor changed.

    Parameters
    ----------
    transformer : transformer or dict of str to transformer
        Cloned for every modality; with a dict, modalities that it does not name pass unchanged.

    Attributes
    ----------
    transformers_ : dict of str to transformer
        The fitted ones.
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> PerView:
        """Fits a transformer for each modality."""
        views = self._views(X)
        chosen = self.transformer
        if isinstance(chosen, Mapping):
            unknown = [name for name in chosen if name not in views]
            if unknown:
                raise ValueError(
                    f"transformer: unknown modality '{unknown[0]}'; the modalities are "
                    f"{listed(views.names)}"
                )
        else:
            chosen = dict.fromkeys(views.names, chosen)
        self.transformers_ = {}
        for name, values in views.items():
            if name in chosen:
                rows = ~absent(values)
                labels = None if y is None else np.asarray(y)[rows]
                self.transformers_[name] = clone(chosen[name]).fit(values[rows], labels)
        self.n_features_in_ = views.shape[1]
        self._features = views.features
        self._widths = {name: values.shape[1] for name, values in views.items()}
        return self

    def transform(self, X: Any) -> MultiView:
        """Transforms each modality; those that are not given stay away."""
        check_is_fitted(self)
        return self._each(X, "transform")

    def inverse_transform(self, X: Any) -> MultiView:
        """Transforms each modality back."""
        check_is_fitted(self)
        return self._each(X, "inverse_transform")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features of all modalities: those of the transformers, as image_pca0."""
        check_is_fitted(self)
        names = []
        for name, width in self._widths.items():
            transformer = self.transformers_.get(name)
            own = self._features.get(name, np.array([f"x{k}" for k in range(width)], dtype=object))
            own = own if transformer is None else transformer.get_feature_names_out(own)
            names += [f"{name}_{feature}" for feature in own]
        return np.array(names, dtype=object)

    def set_output(self, *, transform: str | None = None) -> PerView:
        """Does nothing: the output is always a MultiView."""
        return self

    def _views(self, X: Any, known: list[str] | None = None) -> MultiView:
        if not is_multimodal(X):
            raise TypeError(f"PerView takes several modalities, not {type(X).__name__}")
        return multiview(X, known)

    def _each(self, X: Any, method: str) -> MultiView:
        views = self._views(X, known=list(self.transformers_))
        if method == "transform":
            check_features(views, self._features)
        done: dict[str, Any] = {}
        for name, values in views.items():
            transformer = self.transformers_.get(name)
            done[name] = values if transformer is None else apply(transformer, method, values)
        unchanged = [name for name in views if self.transformers_.get(name) is None]
        features = {name: each for name, each in views.features.items() if name in unchanged}
        return MultiView._of(done, views.index, features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.no_validation = True
        return tags


def apply(transformer: Any, method: str, values: Any) -> NDArray[Any]:
    """Transforms the rows that are there."""
    rows = ~absent(values)
    # Scikit-learn refuses to transform no rows; one row of noughts tells how wide the answer is.
    given = values[rows] if rows.any() else np.zeros((1, values.shape[1]))
    found = getattr(transformer, method)(given)
    found = found.toarray() if issparse(found) else np.asarray(found)
    if rows.all():
        return cast(NDArray[Any], found)
    out = np.full((len(rows), found.shape[1]), np.nan)
    if rows.any():
        out[rows] = found
    return out
