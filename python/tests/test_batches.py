"""Checks learning of classes and tags from batches as they come."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw

import msbdl
from msbdl import MSBDLClassifier, MSBDLTagger, MultiView

WIDTHS = {"image": 8, "text": 6}
DATA = MultiView(draw(900, WIDTHS, 10))
CLASSES = np.array(["high", "low", "middle"])
Y = CLASSES[np.digitize(DATA["image"][:, 0], np.quantile(DATA["image"][:, 0], [1 / 3, 2 / 3]))]
TAGS = np.column_stack([DATA["image"][:, k] > 3.0 for k in range(3)]).astype(int)
STARTS = range(0, 750, 150)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def taught(n_batches: int, **settings: Any) -> MSBDLClassifier:
    model = MSBDLClassifier(n_atoms=10, **settings)
    for number, start in enumerate(STARTS[:n_batches]):
        rows = slice(start, start + 150)
        model.partial_fit(DATA[rows], Y[rows], CLASSES, block=number)
    return model


def test_batches_teach_what_a_fit_does() -> None:
    first, all_five = taught(1), taught(5)
    whole = MSBDLClassifier(n_atoms=10).fit(DATA[:750], Y[:750])
    scores = [model.score(DATA[750:], Y[750:]) for model in (first, all_five, whole)]
    assert scores[1] > scores[0] - 0.02
    assert scores[1] > scores[2] - 0.05
    assert list(all_five.classes_) == [*CLASSES]
    assert all_five.history_["beta"].shape == (all_five.n_iter_, 2)
    np.testing.assert_allclose(all_five.predict_proba(DATA).sum(axis=1), 1)


def size(model: Any) -> int:
    return len(pickle.dumps(model))


def test_a_batch_that_comes_again_is_not_kept_twice() -> None:
    model = taught(2)
    model.predict(DATA)
    before = size(model)
    # A sample has 14 values of eight bytes.
    model.partial_fit(DATA[:150], Y[:150], block=0).predict(DATA)
    assert size(model) < before + 50 * 14 * 8
    model.partial_fit(DATA[300:450], Y[300:450], block=2).predict(DATA)
    assert size(model) > before + 150 * 14 * 8
    with pytest.raises(ValueError, match="block must be of 150 samples, as before, not of 20"):
        model.partial_fit(DATA[:20], Y[:20], block=0)


@pytest.mark.parametrize("start", ["batches", "fit"])
@pytest.mark.parametrize("kind", [MSBDLClassifier, MSBDLTagger])
def test_pickles_and_files_go_on_with_the_same_bits(kind: Any, start: str, tmp_path: Path) -> None:
    y = Y if kind is MSBDLClassifier else TAGS
    classes = {"classes": CLASSES} if kind is MSBDLClassifier else {}
    model = kind(n_atoms=10)
    if start == "fit":
        model.fit(DATA[:300], y[:300]).partial_fit(DATA[300:450], y[300:450], block="a")
    else:
        model.partial_fit(DATA[:150], y[:150], block="a", **classes)
        model.partial_fit(DATA[150:300], y[150:300])
    file = tmp_path / "model.safetensors"
    model.save(file, samples=True)
    copies = [pickle.loads(pickle.dumps(model)), msbdl.load(file)]
    for rows in (slice(450, 600), slice(600, 750)):
        for each in (model, *copies):
            each.partial_fit(DATA[rows], y[rows])
            each.partial_fit(DATA[:150], y[:150], block="a")
        for copy in copies:
            np.testing.assert_array_equal(model.predict_proba(DATA), copy.predict_proba(DATA))
            for name, dictionary in model.dictionaries_.items():
                np.testing.assert_array_equal(dictionary, copy.dictionaries_[name])


def test_a_fit_goes_on_from_a_file_with_its_samples(tmp_path: Path) -> None:
    model = MSBDLClassifier(n_atoms=10).fit(DATA[:300], Y[:300])
    file = tmp_path / "model.safetensors"
    model.save(file, samples=True)
    loaded = msbdl.load(file)
    for each in (model, loaded):
        each.partial_fit(DATA[300:450], Y[300:450])
    np.testing.assert_array_equal(model.predict_proba(DATA), loaded.predict_proba(DATA))


def test_files_hold_samples_only_if_asked_to(tmp_path: Path) -> None:
    model = taught(2)
    small, large = tmp_path / "small.safetensors", tmp_path / "large.safetensors"
    model.save(small)
    model.save(large, samples=True)
    assert large.stat().st_size > small.stat().st_size + 300 * 14 * 8
    value = DATA["image"][3, 3].tobytes()
    assert value in large.read_bytes()
    assert value not in small.read_bytes()
    fitted = MSBDLClassifier(n_atoms=10).fit(DATA[:150], Y[:150])
    for ended in (msbdl.load(small), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(ended.predict(DATA).shape, (900,))
        with pytest.raises(ValueError, match=r"no labelled samples, .* cannot go on: save them"):
            ended.partial_fit(DATA[:150], Y[:150])
    # A fit starts anew.
    assert model.fit(DATA[:150], Y[:150]).n_iter_ == fitted.n_iter_
    np.testing.assert_array_equal(model.predict_proba(DATA), fitted.predict_proba(DATA))


def test_a_fit_that_fails_leaves_what_was_there() -> None:
    model = MSBDLClassifier(n_atoms=10).fit(DATA[:300], Y[:300])
    other = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="preset must be one of"):
        model.set_params(preset="fast").fit(DATA[:150], Y[:150])
    np.testing.assert_array_equal(model.predict_proba(DATA), other.predict_proba(DATA))
    model.set_params(preset="auto").partial_fit(DATA[300:450], Y[300:450])
    # All 450 are kept, not those of the fit that failed.
    assert size(model) > size(other) + 450 * 14 * 8


def test_an_interrupted_first_batch_is_gone_on_from() -> None:
    def stop(facts: dict[str, Any]) -> None:
        if facts["iteration"] == 40:
            raise KeyboardInterrupt

    model = MSBDLClassifier(n_atoms=10, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(DATA[:150], Y[:150], CLASSES)
    assert model.predict(DATA).shape == (900,)
    model.partial_fit(DATA[150:300], Y[150:300])
    assert model.n_iter_ == 41
    assert model.score(DATA, Y) > 0.4


def test_a_bad_batch_after_a_fit_leaves_its_samples() -> None:
    model, other = (MSBDLClassifier(n_atoms=10).fit(DATA[:300], Y[:300]) for _ in range(2))
    with pytest.raises(ValueError, match="modality 'text' has 8 features"):
        model.partial_fit({"text": DATA["image"][:150]}, Y[:150])
    for each in (model, other):
        each.partial_fit(DATA[300:450], Y[300:450])
    np.testing.assert_array_equal(model.predict_proba(DATA), other.predict_proba(DATA))


def test_names_that_look_like_numbers_keep_their_order() -> None:
    names = np.array(["10", "9", "-1"])[np.searchsorted(CLASSES, Y)]
    words, numbers = MSBDLClassifier(n_atoms=10), MSBDLClassifier(n_atoms=10)
    words.fit(DATA[:300], names[:300]).partial_fit(DATA[300:450], names[300:450])
    numbers.fit(DATA[:300], names[:300].astype(int))
    numbers.partial_fit(DATA[300:450], names[300:450].astype(int))
    assert (words.predict(DATA).astype(int) == numbers.predict(DATA)).all()


@pytest.mark.parametrize("kind", [MSBDLClassifier, MSBDLTagger])
def test_a_fit_is_the_first_batch(kind: Any) -> None:
    y = Y if kind is MSBDLClassifier else TAGS
    model = kind(n_atoms=10).fit(DATA[:300], y[:300])
    before = model.dictionaries_
    report = model.score(DATA[750:], y[750:])
    model.partial_fit(DATA[300:600], y[300:600])
    assert model.score(DATA[750:], y[750:]) > report - 0.05
    for name, old in before.items():
        cosines = (old * model.dictionaries_[name]).sum(axis=0)
        assert np.median(cosines) > 0.95


def test_classes_may_come_later_and_labels_may_be_missing(tmp_path: Path) -> None:
    early = Y[:300] != "middle"
    model = MSBDLClassifier(n_atoms=10)
    model.partial_fit(DATA[:300][early], Y[:300][early], CLASSES)
    model.save(tmp_path / "early.safetensors", samples=True)
    loaded = msbdl.load(tmp_path / "early.safetensors")
    assert list(loaded.classes_) == [*CLASSES]
    assert (model.predict_proba(DATA)[:, 2] == 0).all()
    assert "middle" not in model.predict(DATA)
    model.partial_fit(DATA[300:450], np.full(150, np.nan))
    model.partial_fit({"image": DATA["image"][450:750]}, Y[450:750])
    assert model.score(DATA[750:], Y[750:]) > 0.6
    assert "middle" in model.predict(DATA)
    loaded.partial_fit(DATA[300:450], np.full(150, np.nan))
    loaded.partial_fit({"image": DATA["image"][450:750]}, Y[450:750])
    np.testing.assert_array_equal(loaded.predict_proba(DATA), model.predict_proba(DATA))


def test_tags_come_in_batches() -> None:
    model = MSBDLTagger(n_atoms=10)
    for start in STARTS:
        table = TAGS[start : start + 150].astype(float)
        table[::5] = np.nan
        model.partial_fit(DATA[start : start + 150], table)
    assert list(model.classes_) == [0, 1, 2]
    assert (model.predict(DATA[750:]) == TAGS[750:]).mean() > 0.8
    with pytest.raises(ValueError, match="are not those of the first batch"):
        model.partial_fit(DATA[:150], TAGS[:150, :2])
    with pytest.raises(ValueError, match="are not those of the first batch"):
        model.partial_fit(DATA[:150], TAGS[:150], classes=["a", "b", "c"])


@pytest.mark.parametrize(
    ("y", "settings", "text"),
    [
        (None, {}, "y is None"),
        (Y[:20], {}, "inconsistent numbers of samples"),
        (Y[:150], {"classes": None}, "classes must be passed on the first call"),
        (Y[:150], {"classes": ["high", "low"]}, "y: the class 'middle' is not among classes"),
        (np.repeat("low", 150), {}, "the first batch must have samples of at least two classes"),
        (np.full(150, np.nan), {}, "the first batch must have samples of at least two classes"),
    ],
)
def test_bad_first_batches(y: Any, settings: dict[str, Any], text: str) -> None:
    model = MSBDLClassifier(n_atoms=10)
    with pytest.raises(ValueError, match=text):
        model.partial_fit(DATA[:150], y, **{"classes": CLASSES, **settings})
    assert not hasattr(model, "dictionaries_")


def test_bad_later_batches_change_nothing() -> None:
    model = taught(1)
    before = model.predict_proba(DATA)
    for X, y, classes, text in (
        (DATA[:150], Y[:150], ["high", "low"], "is not the same as on last call"),
        ({"sound": DATA["text"][:150]}, Y[:150], None, "X: unknown modality 'sound'"),
        ({"text": DATA["image"][:150]}, Y[:150], None, "modality 'text' has 8 features"),
    ):
        with pytest.raises(ValueError, match=text):
            model.partial_fit(X, y, classes)
    np.testing.assert_array_equal(model.predict_proba(DATA), before)
    with pytest.raises(ValueError, match=r"validation must be at least 0 and below 1, not 1\.5"):
        taught(1, validation=1.5)
