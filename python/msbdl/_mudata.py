"""Learns from MuData and AnnData, and writes what was found into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from msbdl._base import ALONE
from msbdl._coerce import from_mudata, is_anndata, is_mudata
from msbdl._dictionary import MSBDL
from msbdl._multiview import MultiView, matrix


def fit_mudata(
    data: Any,
    n_atoms: int | Mapping[str, int] | None = None,
    *,
    layers: Mapping[str, str | None] | str | None = None,
    key: str = "msbdl",
    **settings: Any,
) -> MSBDL:
    """Learns from the modalities of a MuData (or one AnnData) and writes the result into it.

    ================================  ===========================================================
    ``.obsm[key]``                    codes of all modalities side by side, a row for each sample
    ``.obsm[key + "_gamma"]``         prior variances, which the modalities share
    ``.mod[name].obsm[key]``          codes of one modality, a row for each of its samples
    ``.mod[name].varm[key]``          its atoms, a row for each feature
    ``.uns[key]``                     noise variances, history, stop reason
    ================================  ===========================================================

    Samples may be present in some modalities only.

    Parameters
    ----------
    data : MuData or AnnData
    n_atoms : int or dict of str to int, default=None
        As in MSBDL.
    layers : dict of str to str, default=None
        Layer to take instead of ``.X``, by modality; for an AnnData its name.
    key : str, default="msbdl"
    settings
        Further parameters of MSBDL.

    Returns
    -------
    MSBDL
        The fitted model.
    """
    model = MSBDL(n_atoms, **settings)
    if is_mudata(data):
        if isinstance(layers, str):
            raise TypeError("layers: give a dict from modality to layer")
        views, parts = from_mudata(data, layers), dict(data.mod)
    elif not is_anndata(data):
        raise TypeError(f"data must be a MuData or an AnnData, not {type(data).__name__}")
    else:
        if layers is not None and layers not in data.layers:
            raise ValueError(f"the data have no layer '{layers}'")
        values = matrix(ALONE, data.X if layers is None else data.layers[layers])
        ids = np.asarray(data.obs_names, dtype=object)
        views = MultiView._of(
            {ALONE: values}, ids, {ALONE: np.asarray(data.var_names, dtype=object)}
        )
        parts = {ALONE: data}
    model.fit(views)
    codes, dictionaries = model.encode(views), model.dictionaries_
    place = {sample: row for row, sample in enumerate(data.obs_names)}
    for name, part in parts.items():
        rows = [place[sample] for sample in part.obs_names]
        part.obsm[key] = codes.mean[name][rows]
        part.varm[key] = dictionaries[name]
    data.obsm[key] = model._stacked(codes)
    data.obsm[f"{key}_gamma"] = codes.gamma
    data.uns[key] = {
        "noise_variances": model.noise_variances_,
        "variance_explained": model.variance_explained_,
        "usage": model.usage_,
        "stop_reason": model.stop_reason_,
        "history": model.history_,
    }
    return model
