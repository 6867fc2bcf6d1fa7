"""Makes a MultiView of whatever holds several modalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from msbdl._match import listed, match, sample_ids
from msbdl._multiview import MultiView, feature_names, matrix


def is_multimodal(X: Any) -> bool:
    """Tells several modalities from one array."""
    if issparse(X):
        # One of SciPy's formats is a dict.
        return False
    if isinstance(X, (MultiView, Mapping)) or is_mudata(X):
        return True
    # A list of matrices, but not a list of rows.
    return (
        isinstance(X, (list, tuple))
        and any(len(getattr(each, "shape", ())) == 2 for each in X)
        and all(each is None or len(getattr(each, "shape", ())) == 2 for each in X)
    )


def is_mudata(X: Any) -> bool:
    """Knows a MuData without importing it."""
    return hasattr(X, "mod") and hasattr(X, "obs_names")


def is_anndata(X: Any) -> bool:
    """Knows an AnnData without importing it."""
    return hasattr(X, "obs_names") and hasattr(X, "X") and not hasattr(X, "mod")


def multiview(X: Any, known: Sequence[str] | None = None) -> MultiView:
    """Makes a MultiView; `known` are the names of a model, of which some may be left out."""
    if isinstance(X, MultiView):
        return X
    if is_mudata(X):
        return from_mudata(X)
    if isinstance(X, (list, tuple)):
        X = by_place(X, known)
    if known is not None:
        X = {name: values for name, values in X.items() if values is not None}
        if not X:
            raise ValueError("every modality is None")
    return MultiView(X)


def by_place(X: Sequence[Any], known: Sequence[str] | None) -> dict[str, Any]:
    """Names the members of a list: as the model does, or view0, view1, ..."""
    if known is None:
        # Names are sorted as text: view02 comes before view10.
        digits = len(str(len(X) - 1))
        return {f"view{place:0{digits}}": values for place, values in enumerate(X)}
    if len(X) != len(known):
        raise ValueError(
            f"X has {len(X)} modalities, but the model has {len(known)}: {listed(known)}; "
            "write None for those that are missing"
        )
    return dict(zip(known, X, strict=True))


def from_mudata(mdata: Any, layers: Mapping[str, str | None] | None = None) -> MultiView:
    """Takes the modalities of a MuData, or a layer of each, with its samples in their order."""
    chosen = {} if layers is None else layers
    unknown = [name for name in chosen if name not in mdata.mod]
    if unknown:
        raise ValueError(f"unknown modality '{unknown[0]}'; the modalities are {listed(mdata.mod)}")
    values, ids, features = {}, {}, {}
    for name, part in mdata.mod.items():
        layer = chosen.get(name)
        if layer is not None and layer not in part.layers:
            raise ValueError(f"modality '{name}' has no layer '{layer}'")
        values[name] = matrix(name, part.X if layer is None else part.layers[layer])
        ids[name] = sample_ids(name, part)
        features[name] = feature_names(part)
    # Samples that a modality lacks are the custom here and need no warning.
    matched, index = match(values, ids, quiet=True)
    if index is None:
        raise ValueError("the MuData has no modality")
    place = {sample: row for row, sample in enumerate(index)}
    order = np.array([place[sample] for sample in mdata.obs_names], int)
    named = {name: each for name, each in features.items() if each is not None}
    return MultiView._of(matched, index, named).rows(order)
