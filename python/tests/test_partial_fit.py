"""Checks learning from batches as they come."""

from __future__ import annotations

import json
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("start", ["batches", "fit"])
@pytest.mark.parametrize("center", [True, False])
def test_pickles_and_files_go_on_with_the_same_bits(
    start: str, center: bool, tmp_path: Path
) -> None:
    model = MSBDL(n_atoms=10, center=center)
    if start == "fit":
        model.fit(DATA[:450])
    else:
        model.partial_fit(BATCHES[0], block=0).partial_fit(BATCHES[1]).partial_fit(
            BATCHES[2], block=2
        )
    file = tmp_path / "model.safetensors"
    model.save(file)
    copies = [pickle.loads(pickle.dumps(model)), msbdl.load(file)]
    for each in (model, *copies):
        each.partial_fit(BATCHES[3]).partial_fit(BATCHES[2], block=2)
    for copy in copies:
        np.testing.assert_array_equal(model.transform(TEST), copy.transform(TEST))
        np.testing.assert_array_equal(model.means_["text"], copy.means_["text"])
    # Files of files, too.
    model.save(file)
    again = msbdl.load(file)
    for each in (model, again):
        each.partial_fit(BATCHES[4])
    np.testing.assert_array_equal(again.transform(TEST), model.transform(TEST))


def test_fits_are_not_forgotten() -> None:
    model = MSBDL(n_atoms=10).fit(DATA[:750])
    before = model.score(TEST)
    assert model.partial_fit(TEST[:20]).score(TEST) > before - 0.2
    # A batch of the same size as the fit moves it more than a small one.
    moved = []
    for batch in (TEST[:20], TEST[:120]):
        fitted = MSBDL(n_atoms=10).fit(DATA[:150])
        old = fitted.dictionaries_["text"]
        moved.append(np.abs(fitted.partial_fit(batch).dictionaries_["text"] - old).sum())
    assert moved[0] < 0.7 * moved[1]
    assert model.fit(DATA[:150]).n_iter_ == MSBDL(n_atoms=10).fit(DATA[:150]).n_iter_


def test_files_without_sums_say_so(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    MSBDL(n_atoms=10).fit(BATCHES[0]).save(file)
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    facts = json.loads(header["__metadata__"]["msbdl"])
    del facts["memory"]
    header["__metadata__"]["msbdl"] = json.dumps(facts)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    old = msbdl.load(file)
    assert old.transform(TEST).shape == (150, 20)
    with pytest.raises(ValueError, match=r"no sums of the samples .* cannot go on: fit anew"):
        old.partial_fit(BATCHES[1])


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
