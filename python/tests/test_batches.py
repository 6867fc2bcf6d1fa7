"""Checks learning of classes and tags from batches as they come."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw

import msbdl
from msbdl import MSBDLClassifier, MSBDLTagger, MultiView, _kept

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
    # Of every class a fifth of the labels is held back.
    kept = all_five._kept
    assert len(kept.labels) == 750
    for place in range(3):
        assert kept.held[kept.labels[:, 0] == place].mean() == pytest.approx(0.2, abs=0.01)


def test_a_batch_that_comes_again_is_not_kept_twice() -> None:
    model = taught(2)
    before = model._kept.labels
    model.partial_fit(DATA[:150], Y[:150], block=0)
    np.testing.assert_array_equal(model._kept.labels, before)
    with pytest.raises(ValueError, match="block must be of 150 samples, as before, not of 20"):
        model.partial_fit(DATA[:20], Y[:20], block=0)


def test_pickles_go_on_with_the_same_bits_and_files_do_not(tmp_path: Path) -> None:
    model = taught(2)
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(DATA[300:450], Y[300:450])
    np.testing.assert_array_equal(model.predict_proba(DATA), copy.predict_proba(DATA))
    model.partial_fit(DATA[450:600], Y[450:600]).save(tmp_path / "model.safetensors")
    loaded = msbdl.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(DATA), model.predict_proba(DATA))
    fitted = MSBDLClassifier(n_atoms=10).fit(DATA[:150], Y[:150])
    small = pickle.dumps(fitted)
    assert len(small) < len(pickle.dumps(model))
    for ended in (loaded, pickle.loads(small)):
        with pytest.raises(ValueError, match="partial_fit cannot go on: neither files nor pickles"):
            ended.partial_fit(DATA[:150], Y[:150])
    # A fit starts anew.
    assert model.fit(DATA[:150], Y[:150]).n_iter_ == fitted.n_iter_
    np.testing.assert_array_equal(model.predict_proba(DATA), fitted.predict_proba(DATA))


@pytest.mark.parametrize("kind", [MSBDLClassifier, MSBDLTagger])
def test_a_fit_is_the_first_batch(kind: Any) -> None:
    y = Y if kind is MSBDLClassifier else TAGS
    model = kind(n_atoms=10).fit(DATA[:300], y[:300])
    before = model.dictionaries_
    report = model.score(DATA[750:], y[750:])
    model.partial_fit(DATA[300:600], y[300:600])
    assert model.score(DATA[750:], y[750:]) > report - 0.05
    assert len(model._kept.labels) == 600
    assert 0.15 < model._kept.held[:300].mean() < 0.25
    for name, old in before.items():
        cosines = (old * model.dictionaries_[name]).sum(axis=0)
        assert np.median(cosines) > 0.95


def test_classes_may_come_later_and_labels_may_be_missing() -> None:
    early = Y[:300] != "middle"
    model = MSBDLClassifier(n_atoms=10)
    model.partial_fit(DATA[:300][early], Y[:300][early], CLASSES)
    assert (model.predict_proba(DATA)[:, 2] == 0).all()
    assert "middle" not in model.predict(DATA)
    model.partial_fit(DATA[300:450], np.full(150, np.nan))
    model.partial_fit({"image": DATA["image"][450:750]}, Y[450:750])
    assert model.score(DATA[750:], Y[750:]) > 0.6
    assert "middle" in model.predict(DATA)


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


def test_more_than_can_be_kept_are_drawn_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kept, "KEPT", 100)
    shares = []
    for seed in range(30):
        X = MultiView({"a": np.arange(1000.0)[:, None]})
        kept = _kept.Kept.nothing({"a": 1}, np.zeros((0, 1)))
        for start in range(0, 1000, 40):
            rows = slice(start, start + 40)
            labels = X["a"][rows] % 3
            kept.add(X[rows], labels, kept.hold(labels, 0.2), seed)
        numbers = kept.views["a"][:, 0]
        assert len(set(numbers)) == len(numbers) == 100
        np.testing.assert_array_equal(kept.labels[:, 0], numbers % 3)
        shares.append((numbers < 500).mean())
    # 3000 draws: the standard deviation of the mean is below .01.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.04)


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
