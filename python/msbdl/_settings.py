"""Makes the library's settings of an estimator's parameters; checks types, not values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from msbdl._multiview import MultiView
from msbdl._threads import n_threads

WHOLE = (int, np.integer)
NUMBER = (float, int, np.number)
# More is no whole number to the library.
MOST = 2**63 - 1
# Parameters that the library takes as they are.
PLAIN = (
    "preset",
    "prior",
    "root",
    "max_leaves",
    "schedule",
    "batch_size",
    "posterior",
    "sigma_inf",
    "alpha",
    "max_iter",
)
# Samples per atom below which the default number of atoms never goes.
SAMPLES_PER_ATOM = 10


def library_settings(given: Any, views: MultiView) -> dict[str, Any]:
    """What a fit of `given`, an estimator, is told."""
    for name in ("batch_size", "max_iter", "max_leaves"):
        checked(name, getattr(given, name), WHOLE, min_val=1)
    for name in ("sigma_inf", "alpha"):
        checked(name, getattr(given, name), NUMBER)
    if given.callback is not None and not callable(given.callback):
        raise TypeError(f"callback must be callable, not {given.callback!r}")
    for name in ("preset", "prior"):
        checked_text(name, getattr(given, name))
    for name in ("schedule", "posterior", "root"):
        if getattr(given, name) is not None:
            checked_text(name, getattr(given, name))
    return {
        **{name: getattr(given, name) for name in PLAIN},
        # Groups name all atoms.
        "n_atoms": {} if given.n_atoms is None and given.groups else n_atoms(given.n_atoms, views),
        "groups": None if given.groups is None else as_json("groups", given.groups),
        "sigma0": each_checked("sigma0", given.sigma0, NUMBER),
        "seed": seed(given.random_state),
        "threads": n_threads(given.n_jobs),
    }


def task_settings(given: Any) -> dict[str, Any]:
    """What a fit is told of how labels take part."""
    for name in ("alpha_beta", "nu"):
        checked(name, getattr(given, name), NUMBER)
    checked("validate_every", given.validate_every, WHOLE, min_val=1)
    check_scalar(given.validation, "validation", NUMBER)
    rows = given.validation_rows
    for row in () if rows is None else rows:
        check_scalar(row, "each of validation_rows", WHOLE, min_val=0)
    return {
        "validation": float(given.validation) if rows is None else [int(row) for row in rows],
        "beta0": each_checked("beta0", given.beta0, NUMBER),
        "alpha_beta": given.alpha_beta,
        "nu": given.nu,
        "validate_every": given.validate_every,
        "balance": bool(given.balance),
    }


def n_atoms(given: Any, views: MultiView) -> Any:
    """Atoms of each modality; by default twice the features of the smallest, if samples allow."""
    if given is None:
        fewest = min(values.shape[1] for _, values in views.items())
        return max(1, min(2 * fewest, len(views) // SAMPLES_PER_ATOM))
    return each_checked("n_atoms", given, WHOLE, min_val=1)


def seed(random_state: Any) -> int:
    """A seed of the library's random numbers; a whole number is one already."""
    if isinstance(random_state, WHOLE):
        return int(check_scalar(int(random_state), "random_state", int, min_val=0, max_val=MOST))
    return int(check_random_state(random_state).randint(2**31 - 1))


def checked(name: str, given: Any, kind: Any, min_val: Any = None) -> None:
    """Checks a number that may be left out."""
    if given is not None:
        check_scalar(given, name, kind, min_val=min_val, max_val=MOST if kind is WHOLE else None)


def checked_text(name: str, given: Any) -> None:
    """Checks a choice."""
    if not isinstance(given, str):
        raise TypeError(f"{name} must be text, not {given!r}")


def each_checked(name: str, given: Any, kind: Any, min_val: Any = None) -> Any:
    """Checks a value or a dict of values by modality."""
    if isinstance(given, Mapping):
        for modality, value in given.items():
            checked(f"{name} of '{modality}'", value, kind, min_val)
        return dict(given)
    checked(name, given, kind, min_val)
    return given


def as_json(name: str, given: Any) -> str:
    """Writes lists and dicts of whole numbers, NumPy's among them."""

    def plain(value: Any) -> Any:
        if isinstance(value, (np.integer, np.ndarray)):
            return value.tolist()
        raise TypeError(f"{name} must hold whole numbers and names, not {value!r}")

    return json.dumps(given, default=plain)
