"""Checks labels with dictionaries of different sizes, whose atoms hang together in trees."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GROUPS, TREE, draw_tree
from sklearn.base import clone

import msbdl
from msbdl import MSBDLClassifier, MSBDLTagger, MultiView

VIEWS, ROOTS = draw_tree()
X = MultiView(VIEWS)
CLASSES = np.where(ROOTS.sum(axis=1) > 0, "up", "down")
TAGS = (ROOTS[:, :3] > 0.1).astype(int)
PRIORS = ["atom-to-subspace", "hierarchical", "tree"]
TRAIN, TEST = slice(0, 240), slice(240, 300)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("prior", PRIORS)
def test_classes(prior: str, tmp_path: Path) -> None:
    model = MSBDLClassifier(prior=prior, **TREE).fit(X[TRAIN], CLASSES[TRAIN])
    fitted = model.dictionaries_
    assert model.groups_ == GROUPS
    assert model.score(X[TEST], CLASSES[TEST]) > 0.8
    alone = {"root": X["root"][TEST]}
    assert (model.predict(alone) == CLASSES[TEST]).mean() > 0.8
    # The leaves have signs of their own, and say nothing.
    assert model.predict_proba({"leaf": X["leaf"][TEST]}).shape == (60, 2)
    file = tmp_path / "model.safetensors"
    model.save(file, samples=True)
    loaded = msbdl.load(file)
    assert isinstance(loaded, MSBDLClassifier)
    assert loaded.groups_ == GROUPS
    assert loaded.get_params()["prior"] == prior
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    for each in (model, loaded):
        each.partial_fit(X[TEST], CLASSES[TEST])
    np.testing.assert_array_equal(model.predict_proba(X), loaded.predict_proba(X))
    assert model.score(X, CLASSES) > 0.8
    before = model.encode(X[TRAIN]).log_evidence.mean()
    for _ in range(5):
        model.partial_fit(X[TRAIN], CLASSES[TRAIN], block="train")
    assert model.encode(X[TRAIN]).log_evidence.mean() > before - 0.1
    again = clone(model)
    assert not hasattr(again, "classes_")
    again.fit(X[TRAIN], CLASSES[TRAIN])
    np.testing.assert_array_equal(again.dictionaries_["leaf"], fitted["leaf"])


@pytest.mark.parametrize("prior", PRIORS)
def test_tags_and_branches_that_are_learnt(prior: str) -> None:
    settings: dict[str, Any] = {"n_atoms": {"root": 6}, "root": "root", "max_leaves": 2}
    model = MSBDLTagger(prior=prior, **settings).fit(X[TRAIN], TAGS[TRAIN])
    assert (
        sum(len(group["leaf"]) for group in model.groups_) == model.dictionaries_["leaf"].shape[1]
    )
    assert (model.predict(X[TEST]) == TAGS[TEST]).mean() > 0.85
