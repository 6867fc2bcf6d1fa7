"""Draws what was learnt. Needs matplotlib.

Every function takes a fitted estimator or the codes of samples, draws into ``axes`` if given,
and returns the axes that it drew into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from msbdl._codes import Codes

__all__ = ["atoms", "coactivation", "confusion", "history", "sparsity", "usage"]

# A coefficient counts as in use when its variance is above this share of the sample's largest.
IN_USE = 1e-3


def history(model: Any, axes: Sequence[Any] | None = None) -> Sequence[Any]:
    """Draws the log-likelihood and the noise of every modality over the iterations."""
    facts = model.history_
    if axes is None:
        axes = plt.subplots(2, 1, sharex=True, layout="constrained")[1]
    upper, lower = axes
    iterations = np.arange(1, model.n_iter_ + 1)
    upper.plot(iterations, facts["log_likelihood"])
    upper.set_ylabel("log-likelihood")
    for name, sigma in zip(model.modalities_, facts["sigma"].T, strict=True):
        lower.plot(iterations, sigma, label=name)
    lower.set(xlabel="iteration", ylabel="noise (standard deviation)", yscale="log")
    lower.legend(frameon=False)
    starts = np.flatnonzero(np.append(True, facts["stage"][1:] != facts["stage"][:-1]))
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else len(iterations)
        if place:
            for axis in axes:
                axis.axvline(start + 0.5, color="0.85", linewidth=0.8, zorder=0)
        if end - start > 0.04 * len(iterations):
            middle = (start + end) / 2
            upper.annotate(
                str(facts["stage"][start]),
                (middle, 1.02),
                xycoords=("data", "axes fraction"),
                ha="center",
                fontsize="small",
            )
    return axes


def atoms(
    model: Any,
    *,
    which: Sequence[int] | None = None,
    shapes: Mapping[str, tuple[int, int]] | None = None,
    axes: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Draws atoms, a row for each modality and a column for each atom.

    Parameters
    ----------
    model : fitted estimator
    which : sequence of int, default=None
        Atoms to draw; None draws the eight that most samples use.
    shapes : dict of str to (height, width), default=None
        Modalities whose atoms are images.
    axes : ndarray of shape (n_modalities, n_atoms), default=None
    """
    shapes = {} if shapes is None else shapes
    dictionaries = model.dictionaries_
    unknown = [name for name in shapes if name not in dictionaries]
    if unknown:
        raise ValueError(f"shapes: unknown modality '{unknown[0]}'")
    for name, (height, width) in shapes.items():
        if height * width != len(dictionaries[name]):
            raise ValueError(
                f"shapes: {height} x {width} does not fit the {len(dictionaries[name])} features "
                f"of modality '{name}'"
            )
    chosen = list(np.argsort(-model.usage_)[:8] if which is None else which)
    if axes is None:
        size = (1.1 * len(chosen) + 0.6, 1.2 * len(dictionaries) + 0.3)
        axes = plt.subplots(
            len(dictionaries), len(chosen), squeeze=False, figsize=size, layout="constrained"
        )[1]
    for row, (name, dictionary) in enumerate(dictionaries.items()):
        limit = np.abs(dictionary[:, chosen]).max()
        for column, atom in enumerate(chosen):
            axis, values = axes[row, column], dictionary[:, atom]
            axis.set(xticks=[], yticks=[])
            if name in shapes:
                image = values.reshape(shapes[name])
                axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit)
            else:
                axis.axhline(0, color="0.8", linewidth=0.8)
                axis.plot(values, linewidth=1)
                axis.set_ylim(-1.05 * limit, 1.05 * limit)
            if row == 0:
                axis.set_title(f"atom {atom}", fontsize="small")
        axes[row, 0].set_ylabel(name)
    return axes


def usage(codes: Codes, axes: Sequence[Any] | None = None) -> Sequence[Any]:
    """Draws how many samples use each atom, and its mean energy in every modality."""
    if axes is None:
        axes = plt.subplots(2, 1, sharex=True, layout="constrained")[1]
    upper, lower = axes
    share = in_use(codes).mean(axis=0)
    order = np.argsort(-share)
    upper.bar(np.arange(len(order)), share[order], color="0.5")
    upper.set_ylabel("share of samples")
    for name, mean in codes.mean.items():
        lower.plot((mean**2).mean(axis=0)[order], ".", label=name)
    lower.set(xlabel="atoms, most used first", ylabel="mean energy")
    lower.legend(frameon=False)
    return axes


def sparsity(codes: Codes, axes: Any = None) -> Any:
    """Draws how many atoms the samples use."""
    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    counts = in_use(codes).sum(axis=1)
    axes.hist(counts, bins=np.arange(counts.max() + 2) - 0.5, color="0.5", rwidth=0.9)
    axes.axvline(counts.mean(), color="C3", label=f"mean {counts.mean():.1f}")
    axes.set(xlabel="atoms in use", ylabel="samples")
    axes.legend(frameon=False)
    return axes


def coactivation(codes: Codes, first: str, second: str, axes: Any = None) -> Any:
    """Draws the correlation of the sizes of the codes of two modalities.

    Atoms of one modality (rows) that rise and fall with atoms of another (columns) show: under the
    one-to-one prior on the diagonal, with trees in the block of a root and its leaves.
    """
    for name in (first, second):
        if name not in codes.mean:
            raise ValueError(f"unknown modality '{name}'; the codes have {', '.join(codes.mean)}")
    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    left, right = (standardised(np.abs(codes.mean[name])) for name in (first, second))
    picture = axes.imshow(left.T @ right / len(left), cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set(xlabel=f"atoms of {second}", ylabel=f"atoms of {first}")
    axes.figure.colorbar(picture, ax=axes, label="correlation of |code|")
    return axes


def confusion(model: Any, X: Any, y: Any, axes: Any = None) -> Any:
    """Draws which classes a classifier takes for which, as shares of the true class."""
    from sklearn.metrics import ConfusionMatrixDisplay

    axes = plt.subplots(layout="constrained")[1] if axes is None else axes
    ConfusionMatrixDisplay.from_predictions(
        y, model.predict(X), normalize="true", values_format=".2f", cmap="Blues", ax=axes
    )
    return axes


def in_use(codes: Codes) -> NDArray[np.bool_]:
    """Shows which samples (rows) use which atoms (columns)."""
    if not isinstance(codes, Codes):
        raise TypeError(f"codes must be what encode returns, not {type(codes).__name__}")
    threshold: NDArray[np.float64] = IN_USE * codes.gamma.max(axis=1, keepdims=True)
    return codes.gamma > threshold


def standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of mean nought and variance one; those that never change are nought."""
    spread: NDArray[np.float64] = values.std(axis=0)
    centred: NDArray[np.float64] = values - values.mean(axis=0)
    return centred / np.where(spread > 0, spread, np.inf)
