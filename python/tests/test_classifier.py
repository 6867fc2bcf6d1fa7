"""Checks classes and tags from several modalities."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score

import msbdl
from msbdl import MSBDLClassifier, MSBDLTagger, MultiView, _core
from msbdl._settings import task_settings

X = draw(300, {"image": 8, "text": 6}, 10)
CLASSES = np.array(["high", "low", "middle"])
Y = CLASSES[np.digitize(X["image"][:, 0], np.quantile(X["image"][:, 0], [1 / 3, 2 / 3]))]
TAGS = np.column_stack([X["image"][:, k] > 3.0 for k in range(3)]).astype(int)


@pytest.fixture(scope="module")
def classifier() -> MSBDLClassifier:
    return MSBDLClassifier(n_atoms=10).fit(X, Y)


@pytest.fixture(scope="module")
def tagger() -> MSBDLTagger:
    return MSBDLTagger(n_atoms=10).fit(X, TAGS)


def test_classes_are_told(classifier: MSBDLClassifier) -> None:
    assert list(classifier.classes_) == ["high", "low", "middle"]
    assert classifier.score(X, Y) > 0.7
    probability = classifier.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert (classifier.classes_[probability.argmax(axis=1)] == classifier.predict(X)).all()
    assert classifier.decision_function(X).shape == (300, 3)
    assert classifier.history_["beta"].shape == (classifier.n_iter_, 2)
    alone = classifier.predict({"image": X["image"]})
    assert (alone == Y).mean() > 0.7
    assert classifier.encode(X).gamma.shape == (300, 10)


def test_modalities_vote(classifier: MSBDLClassifier, tagger: MSBDLTagger) -> None:
    holes = {**X, "text": np.where(np.arange(300)[:, None] < 4, np.nan, X["text"])}
    for model, columns in ((classifier, 3), (tagger, 3)):
        votes = model.votes(holes)
        assert list(votes) == ["image", "text"]
        assert votes["image"].shape == (300, columns)
        assert np.isnan(votes["text"][:4]).all()
        assert np.isfinite(votes["text"][4:]).all()
        # A modality that is alone says what is said.
        alone = {"image": X["image"]}
        np.testing.assert_allclose(model.votes(alone)["image"], model.predict_proba(alone))


def test_samples_to_set_aside_may_be_named(classifier: MSBDLClassifier) -> None:
    share = _core.Stream.held([str(y) for y in Y], task_settings(classifier), 0)
    named = MSBDLClassifier(n_atoms=10, validation_rows=np.array(share)).fit(X, Y)
    np.testing.assert_array_equal(named.predict_proba(X), classifier.predict_proba(X))


def test_tags_are_told(tagger: MSBDLTagger) -> None:
    found = tagger.predict(X)
    assert found.shape == TAGS.shape
    assert (found == TAGS).mean() > 0.8
    assert ((tagger.predict_proba(X) > 0.5) == found).all()
    assert ((tagger.decision_function(X) > 0) == found).all()


def test_files_and_pickles(
    classifier: MSBDLClassifier, tagger: MSBDLTagger, tmp_path: Path
) -> None:
    for model in (classifier, tagger):
        model.save(tmp_path / "model.safetensors")
        loaded = msbdl.load(tmp_path / "model.safetensors")
        assert type(loaded) is type(model)
        for other in (loaded, pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
            np.testing.assert_array_equal(model.predict(X), other.predict(X))
            np.testing.assert_array_equal(model.classes_, other.classes_)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([False, True]),
        np.array([3, 10]),
        np.array(["False", "True"]),
        np.array(["10", "3"]),
        np.array([False, True], dtype=object),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_keep_their_type_in_files(classes: Any, tmp_path: Path) -> None:
    y = classes[(Y == "high").astype(int)]
    model = MSBDLClassifier(n_atoms=5, max_iter=5).fit(X, y)
    model.save(tmp_path / "model.safetensors", samples=True)
    loaded = msbdl.load(tmp_path / "model.safetensors")
    assert isinstance(loaded, MSBDLClassifier)
    assert loaded.classes_.tolist() == classes.tolist()
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.score(X, y) == model.score(X, y)
    loaded.partial_fit(X, y).save(tmp_path / "again.safetensors")
    again = msbdl.load(tmp_path / "again.safetensors")
    assert isinstance(again, MSBDLClassifier)
    assert again.classes_.tolist() == classes.tolist()


def test_files_that_do_not_say_what_classes_are(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    for names, expected in ((["3", "10"], [3, 10]), (["False", "True"], ["False", "True"])):
        y = np.array(names)[(Y == "high").astype(int)]
        with pytest.warns(ConvergenceWarning):
            model = MSBDLClassifier(n_atoms=5, max_iter=2).fit(X, y)
        # As the command writes it.
        model._model.save(file, samples=False)
        loaded = msbdl.load(file)
        assert isinstance(loaded, MSBDLClassifier)
        assert loaded.classes_.tolist() == expected
        assert (loaded.predict(X).astype(str) == model.predict(X)).all()


def test_samples_without_a_label_are_learnt_from() -> None:
    half = np.arange(300) % 2 == 0
    numbers = np.where(half, np.searchsorted(CLASSES, Y), np.nan)
    model = MSBDLClassifier(n_atoms=10).fit(X, numbers)
    assert list(model.classes_) == [0, 1, 2]
    assert model.predict(X).dtype.kind == "i"
    words = MSBDLClassifier(n_atoms=10).fit(X, np.where(half, Y.astype(object), None))
    np.testing.assert_allclose(words.predict_proba(X), model.predict_proba(X))
    tags = np.where(half[:, None], TAGS, np.nan)
    assert (MSBDLTagger(n_atoms=10).fit(X, tags).predict(X) == TAGS).mean() > 0.75


def test_scores_are_of_the_samples_with_a_label(
    classifier: MSBDLClassifier, tagger: MSBDLTagger
) -> None:
    known = np.arange(300) % 3 > 0
    rows = MultiView(X)[known]
    some = classifier.score(X, np.where(known, Y.astype(object), None))
    assert some == classifier.score(rows, Y[known]) == (classifier.predict(rows) == Y[known]).mean()
    tags = np.where(known[:, None], TAGS, np.nan)
    assert tagger.score(X, tags) == (tagger.predict(rows) == TAGS[known]).all(axis=1).mean()
    heavy = np.where(np.arange(300) < 5, 1.0, 0.0)
    first = MultiView(X)[:5]
    assert classifier.score(X, Y, heavy) == pytest.approx(classifier.score(first, Y[:5]))
    with pytest.raises(ValueError, match="y: no sample has a label"):
        classifier.score(X, np.full(300, np.nan))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [bool, int])
def test_numbers_and_booleans_of_which_some_are_none(kind: Any) -> None:
    y = np.where(np.arange(300) < 9, None, (Y == "high").astype(kind).astype(object))
    model = MSBDLClassifier(n_atoms=5, max_iter=5).fit(X, y)
    assert model.classes_.dtype == kind
    assert model.partial_fit(X, y).score(X, y) > 0.5


def test_scores_of_sparse_tags(tagger: MSBDLTagger) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    assert tagger.score(X, sparse.csr_matrix(TAGS)) == tagger.score(X, TAGS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cross_validation_on_several_modalities() -> None:
    scores = cross_val_score(MSBDLClassifier(n_atoms=10), MultiView(X), Y, cv=3)
    assert scores.mean() > 0.6
    some = np.where(np.arange(300) < 40, None, Y.astype(object))
    assert (
        cross_val_score(MSBDLClassifier(n_atoms=10), MultiView(X), some, cv=KFold(3)).mean() > 0.5
    )


def test_labels_are_matched_by_id() -> None:
    pd = pytest.importorskip("pandas")
    ids = [f"s{i}" for i in range(300)]
    frames = {name: pd.DataFrame(values, index=ids) for name, values in X.items()}
    y = pd.Series(Y, index=ids)
    turned = MSBDLClassifier(n_atoms=10, max_iter=50)
    plain = MSBDLClassifier(n_atoms=10, max_iter=50)
    with pytest.warns(ConvergenceWarning):
        turned.fit(frames, y.iloc[::-1].iloc[:200])
    with pytest.warns(ConvergenceWarning):
        plain.fit(X, np.where(np.arange(300) >= 100, Y.astype(object), None))
    np.testing.assert_array_equal(turned.predict_proba(X), plain.predict_proba(X))
    with pytest.raises(ValueError, match="y: X has no sample 'other'"):
        turned.fit(frames, y.rename({"s3": "other"}))
    with pytest.raises(ValueError, match="y: the sample id 's4' occurs more than once"):
        turned.fit(frames, y.rename({"s3": "s4"}))


def test_tags_of_a_frame_keep_their_names() -> None:
    pd = pytest.importorskip("pandas")
    model = MSBDLTagger(n_atoms=10).fit(X, pd.DataFrame(TAGS, columns=["sea", "sky", "car"]))
    assert list(model.classes_) == ["sea", "sky", "car"]


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (None, "y is None"),
        (np.full(300, np.nan), "no sample has a label"),
        (np.ones(300), "y has one class, 1"),
        (Y[:20], "inconsistent numbers of samples"),
        (X["image"][:, 0], "Unknown label type: continuous"),
        (np.array(["a"] * 299 + ["b"]), "class 'b' has a single sample"),
    ],
)
def test_bad_labels(y: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MSBDLClassifier(n_atoms=10).fit(X, y)


def test_classes_of_different_types() -> None:
    for first, second in (("a", 1), (1, "a")):
        mixed = np.array([second if k % 2 else first for k in range(300)], dtype=object)
        with pytest.raises(TypeError, match="y mixes classes of different types"):
            MSBDLClassifier(n_atoms=10).fit(X, mixed)
    with pytest.raises(TypeError, match=r"^Support for labels represented as bytes"):
        MSBDLClassifier(n_atoms=10).fit(X, Y.astype("S"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"validation": 1.5}, "validation must be at least 0 and below 1"),
        ({"validation_rows": [300]}, "validation_rows must be below the number of samples, 300"),
        ({"validation_rows": [-1]}, "each of validation_rows == -1, must be >= 0"),
        ({"nu": -1.0}, "nu must be positive"),
        ({"alpha_beta": 2.0}, "alpha_beta must be between 0 and 1"),
        ({"validate_every": 0}, "validate_every == 0, must be >= 1"),
        ({"beta0": {"sound": 1.0}}, "beta0: unknown modality 'sound'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MSBDLClassifier(n_atoms=10, **settings).fit(X, Y)


def test_tags_are_noughts_and_ones() -> None:
    with pytest.raises(ValueError, match="y: tags must be a table of 0 and 1: could not convert"):
        MSBDLTagger(n_atoms=10).fit(X, np.full((300, 2), "sea"))
    with pytest.raises(ValueError, match="row 4, column 1: the value is 2 instead of 0 or 1"):
        MSBDLTagger(n_atoms=10).fit(X, np.where(np.arange(900).reshape(300, 3) == 13, 2, TAGS))
