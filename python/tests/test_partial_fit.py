"""Checks learning from batches as they come."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw

import msbdl
from msbdl import MSBDL, MultiView

WIDTHS = {"image": 8, "text": 6}
DATA = MultiView(draw(900, WIDTHS, 10))
BATCHES = [DATA[start : start + 150] for start in range(0, 750, 150)]
TEST = DATA[750:]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_batches_help_and_a_second_pass_goes_on(seed: int) -> None:
    data = MultiView(draw(900, WIDTHS, 10, seed))
    batches = [data[start : start + 150] for start in range(0, 750, 150)]
    model = MSBDL(n_atoms=10).partial_fit(batches[0], block=0)
    scores = [model.score(data[750:])]
    for _ in range(2):
        for number, batch in enumerate(batches):
            model.partial_fit(batch, block=number)
        scores.append(model.score(data[750:]))
    # A pass gains .3 or more here; the next changes little, since evidence of new samples is not
    # what EM raises.
    assert min(scores[1:]) > scores[0] + 0.1
    assert list(model.history_["stage"][-10:]) == ["stream"] * 10


def test_a_batch_that_comes_again_is_not_counted_twice() -> None:
    once, twice, anonymous = (MSBDL(n_atoms=10).partial_fit(BATCHES[0], block=0) for _ in range(3))
    for _ in range(30):
        once.partial_fit(BATCHES[0], block="0")
    for model, block in ((twice, 0), (anonymous, None)):
        for _ in range(30):
            model.partial_fit(BATCHES[0], block=block)
    np.testing.assert_array_equal(once.dictionaries_["text"], twice.dictionaries_["text"])
    # After many batches that are taken for new ones, a further one hardly matters any more.
    anonymous_before = anonymous.dictionaries_["text"]
    once_before = once.dictionaries_["text"]
    for model, block in ((once, 1), (anonymous, 1)):
        model.partial_fit(BATCHES[1], block=block)
    moved = np.abs(once.dictionaries_["text"] - once_before).sum()
    assert np.abs(anonymous.dictionaries_["text"] - anonymous_before).sum() < 0.3 * moved


def test_pickles_go_on_with_the_same_bits() -> None:
    model = MSBDL(n_atoms=10)
    for number, batch in enumerate(BATCHES[:3]):
        model.partial_fit(batch, block=number)
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.partial_fit(BATCHES[3]).partial_fit(BATCHES[1], block=1)
    np.testing.assert_array_equal(model.transform(TEST), copy.transform(TEST))


def test_fits_and_files_are_resumed_and_not_forgotten(tmp_path: Path) -> None:
    fitted = MSBDL(n_atoms=10).fit(DATA[:750])
    fitted.save(tmp_path / "model.safetensors")
    loaded = msbdl.load(tmp_path / "model.safetensors")
    assert isinstance(loaded, MSBDL)
    before = fitted.score(TEST)
    for model in (fitted, loaded):
        model.partial_fit(TEST[:20])
        assert model.score(TEST) > before - 0.2
    np.testing.assert_array_equal(fitted.dictionaries_["text"], loaded.dictionaries_["text"])
    assert fitted.fit(DATA[:150]).n_iter_ == MSBDL(n_atoms=10).fit(DATA[:150]).n_iter_


def test_modalities_may_be_missing_from_a_batch() -> None:
    model = MSBDL(n_atoms=10).partial_fit(BATCHES[0])
    before: dict[str, Any] = model.dictionaries_
    model.partial_fit({"text": BATCHES[1]["text"]})
    assert (model.dictionaries_["text"] != before["text"]).any()
    # Nothing new was said of the images; only the first batch's own sums are used again.
    np.testing.assert_allclose(model.dictionaries_["image"], before["image"], atol=0.1)


def test_bad_batches() -> None:
    model = MSBDL(n_atoms=10).partial_fit(BATCHES[0], block=0)
    with pytest.raises(ValueError, match="block must be of 150 samples, as before, not of 20"):
        model.partial_fit(BATCHES[0][:20], block=0)
    with pytest.raises(ValueError, match="X: unknown modality 'sound'"):
        model.partial_fit({"sound": BATCHES[0]["text"]})
    with pytest.raises(ValueError, match="modality 'text' has 8 features"):
        model.partial_fit({"text": BATCHES[0]["image"]})
