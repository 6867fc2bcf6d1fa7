"""Hands arrays to the library and joins what it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from msbdl._multiview import MultiView


def dense(views: MultiView) -> list[tuple[str, NDArray[np.float64]]]:
    """Modalities as the library takes them."""
    return [(name, to_dense(values)) for name, values in views.items()]


def to_dense(values: Any) -> NDArray[np.float64]:
    """C-ordered float64; no copy of what is that already."""
    values = values.toarray() if issparse(values) else values
    return np.ascontiguousarray(values, dtype=np.float64)


def join(blocks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """One array of several; no copy of a single one."""
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


@contextmanager
def explained(views: MultiView, start: int = 0) -> Iterator[None]:
    """Names the sample in the library's errors; `start` is the first row that it was given."""
    try:
        yield
    except ValueError as error:
        found = re.search(r"row (\d+)", str(error))
        if found is None:
            raise
        row = start + int(found[1])
        place = f"row {row}" if views.index is None else f"sample {views.index[row]!r}"
        raise ValueError(str(error).replace(found[0], place, 1)) from None
