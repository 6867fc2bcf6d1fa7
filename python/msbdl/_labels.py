"""Makes the library's labels of whatever y is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from msbdl._match import default_ids, refuse_other_order, sample_ids
from msbdl._multiview import MultiView


def tag_table(y: Any) -> NDArray[np.float64] | None:
    """The table of tags that y is; None if it is a column of classes."""
    table = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if table.ndim < 2 or table.shape[1] < 2:
        return None
    try:
        checked: NDArray[np.float64] = check_array(
            table, dtype=np.float64, order="C", ensure_all_finite="allow-nan", input_name="y"
        )
    except ValueError as error:
        raise ValueError(f"y: tags must be a table of 0 and 1: {error}") from error
    return checked


def tag_names(y: Any, table: NDArray[np.float64]) -> NDArray[Any]:
    """The names of the columns, or their numbers."""
    return np.array(list(getattr(y, "columns", range(table.shape[1]))))


def by_id(y: Any, views: MultiView) -> Any:
    """Brings labels with sample ids into the order of the samples; others stay as they are."""
    ids = sample_ids("y", y)
    if views.index is not None and (numbers := default_ids(y)) is not None:
        refuse_other_order("y", "X", numbers, views.index)
    if ids is None or views.index is None:
        return y
    unknown = set(ids) - set(views.index)
    if unknown:
        raise ValueError(f"y: X has no sample {min(unknown, key=str)!r}")
    return y.reindex(views.index)


def absent_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Shows which labels are NaN or None."""
    if y.dtype.kind == "O":
        # NaN is the one value that differs from itself; pandas' NA does not answer.
        return np.array([label is None or label is not label or is_nan(label) for label in y], bool)
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)


def is_nan(label: Any) -> bool:
    """Knows NaN and pandas' NA."""
    return type(label).__name__ == "NAType" or (isinstance(label, float) and label != label)


def whole(labels: NDArray[Any]) -> NDArray[Any]:
    """Numbers that None had made objects, or NaN floats, become whole again."""
    if labels.dtype.kind == "O":
        numbers = np.array(labels.tolist())
        labels = numbers if numbers.dtype.kind in "biuf" else labels
    if labels.dtype.kind == "f" and (np.isfinite(labels) & (labels == np.rint(labels))).all():
        return labels.astype(np.int64)
    return labels


def as_labels(labels: NDArray[np.float64], names: list[str], among: list[str] | None = None) -> Any:
    """Labels as the library takes them: a table of tags, or a column of places among `names`.

    With `among`, classes that none of the samples has count as well.
    """
    if labels.shape[1] > 1:
        return names, np.ascontiguousarray(labels)
    given = [None if np.isnan(place) else names[int(place)] for place in labels[:, 0]]
    return given if among is None else (among, given)


def name_type(classes: NDArray[Any]) -> str | None:
    """What all classes are: bool, int or str; None if they are anything else."""
    kinds = {type(name) for name in classes.tolist()}
    return kinds.pop().__name__ if len(kinds) == 1 and kinds <= {bool, int, str} else None


def from_names(names: list[str], kind: str | None) -> NDArray[Any]:
    """Class names from a file; where it does not say what they are, whole numbers if all are."""
    if kind == "bool":
        return np.array([name == "True" for name in names])
    if kind == "str":
        return np.array(names)
    try:
        return np.array([int(name) for name in names])
    except ValueError:
        return np.array(names)
