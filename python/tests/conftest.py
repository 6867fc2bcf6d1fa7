"""Makes small data that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Views = dict[str, NDArray[np.float64]]


def draw(n_samples: int, widths: dict[str, int], n_atoms: int, seed: int = 0) -> Views:
    """Sparse codes with a common support, random dictionaries, a little noise."""
    rng = np.random.default_rng(seed)
    support = rng.random((n_samples, n_atoms)) < 2 / n_atoms
    support[np.arange(n_samples), rng.integers(n_atoms, size=n_samples)] = True
    views = {}
    for name, width in widths.items():
        codes = rng.normal(size=support.shape) * support
        atoms = rng.normal(size=(n_atoms, width))
        views[name] = codes @ atoms + 0.1 * rng.normal(size=(n_samples, width)) + 3.0
    return views


@pytest.fixture(scope="session")
def views() -> Views:
    return draw(150, {"image": 8, "text": 6}, 10)


GROUPS = [{"root": [k], "leaf": [2 * k, 2 * k + 1]} for k in range(6)]
TREE: dict[str, Any] = {"n_atoms": {"root": 6, "leaf": 12}, "groups": GROUPS, "root": "root"}


def draw_tree() -> tuple[Views, NDArray[np.float64]]:
    """Data whose root atoms have two leaves each, and the codes of the roots."""
    rng = np.random.default_rng(0)
    support = rng.random((300, 6)) < 0.25
    roots = support * rng.normal(size=(300, 6))
    leaves = support.repeat(2, axis=1) * rng.normal(size=(300, 12))
    views = {"root": roots @ rng.normal(size=(6, 8)), "leaf": leaves @ rng.normal(size=(12, 14))}
    noisy = {name: values + 0.05 * rng.normal(size=values.shape) for name, values in views.items()}
    return noisy, roots
