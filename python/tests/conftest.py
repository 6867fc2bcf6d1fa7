"""Makes small data that several tests share."""

from __future__ import annotations

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
