"""Matches samples by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from msbdl._warn import warn


class SampleMismatchWarning(UserWarning):
    """Some samples lack a modality in which their ids do not occur."""


def sample_ids(name: str, given: Any) -> NDArray[Any] | None:
    """Finds the sample ids of a frame or an AnnData; a default index is none."""
    if hasattr(given, "obs_names"):
        index = given.obs_names
    elif hasattr(given, "iloc") and default_ids(given) is None:
        index = given.index
    else:
        return None
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        place = name if name == "y" else f"modality '{name}'"
        raise ValueError(f"{place}: the sample id {twice!r} occurs more than once")
    return np.asarray(index, dtype=object)


def default_ids(given: Any) -> NDArray[Any] | None:
    """Finds the row numbers that a frame has for an index when it was given none."""
    index: Any = getattr(given, "index", None)
    if type(index).__name__ != "RangeIndex" or index.start != 0 or index.step != 1:
        return None
    return np.arange(len(index)).astype(object)


def with_defaults(
    ids: Mapping[str, NDArray[Any] | None], defaults: Mapping[str, NDArray[Any] | None]
) -> dict[str, NDArray[Any] | None]:
    """Takes row numbers for ids where other frames have some of them, as after filtering."""
    explicit = {name: each for name, each in ids.items() if each is not None}
    found = dict(ids)
    for name, numbers in defaults.items():
        if numbers is None:
            continue
        common = {other: x for other, x in explicit.items() if not set(x).isdisjoint(numbers)}
        if any(len(each) != len(numbers) for each in common.values()):
            found[name] = numbers
            continue
        for other, each in common.items():
            refuse_other_order(f"modality '{name}'", f"modality '{other}'", numbers, each)
    return found


def refuse_other_order(name: str, other: str, numbers: NDArray[Any], ids: NDArray[Any]) -> None:
    """Refuses to guess whether rows or ids belong together."""
    if not np.array_equal(numbers, ids) and not set(numbers).isdisjoint(ids):
        raise ValueError(
            f"{name} has the default index, but {other} has other row numbers: give both their "
            "ids, or arrays whose rows belong together"
        )


def match(
    values: dict[str, Any], ids: Mapping[str, NDArray[Any] | None], *, quiet: bool = False
) -> tuple[dict[str, Any], NDArray[Any] | None]:
    """Brings modalities with ids to the union of their samples, in order of first appearance."""
    with_ids = {name: each for name, each in ids.items() if each is not None}
    if not with_ids:
        same_length(values)
        return values, None
    first = next(iter(with_ids.values()))
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
            other = next(other for other in with_ids if other != name)
            raise ValueError(
                f"modality '{name}': none of its sample ids occurs in another modality "
                f"(for example {with_ids[name][0]!r}; {with_ids[other][0]!r} in '{other}')"
            )
    lacking = {name: len(place) - len(own) for name, own in rows.items() if len(own) < len(place)}
    if lacking and not quiet:
        told = ", ".join(f"{count} lack '{name}'" for name, count in lacking.items())
        warn(f"{len(place)} samples matched by id: {told}", SampleMismatchWarning)
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
