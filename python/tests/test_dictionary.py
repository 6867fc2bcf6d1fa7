"""Checks fits, codes and files: what the transformer promises."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GROUPS, TREE, draw, draw_tree
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import msbdl
from msbdl import MSBDL


@pytest.fixture(scope="module")
def model(views: dict[str, Any]) -> MSBDL:
    return MSBDL(n_atoms=10).fit(views)


def test_attributes_have_their_documented_shapes(model: MSBDL, views: dict[str, Any]) -> None:
    assert model.modalities_ == ["image", "text"]
    assert model.groups_ == [{"image": [k], "text": [k]} for k in range(10)]
    assert model.n_features_in_ == 14
    for name, values in views.items():
        assert model.dictionaries_[name].shape == (values.shape[1], 10)
        np.testing.assert_allclose(np.linalg.norm(model.dictionaries_[name], axis=0), 1)
        assert model.means_[name].shape == (values.shape[1],)
        # The truth is 0.01.
        assert 0.003 < model.noise_variances_[name] < 0.03
        assert 0.9 < model.variance_explained_[name] <= 1
    assert model.usage_.shape == (10,)
    assert model.converged_ == (model.stop_reason_ == "converged")
    assert model.history_["sigma"].shape == (model.n_iter_, 2)
    assert model.history_["log_likelihood"].shape == (model.n_iter_,)
    final = np.sqrt([model.noise_variances_[name] for name in model.modalities_])
    np.testing.assert_allclose(model.history_["sigma"][-1], final, rtol=0.5)


def test_codes_reconstruct_the_data(model: MSBDL, views: dict[str, Any]) -> None:
    codes = model.encode(views)
    assert codes.gamma.shape == (150, 10)
    assert codes.log_evidence.shape == (150,)
    back = model.inverse_transform(model.transform(views))
    for name, values in views.items():
        assert codes.mean[name].shape == codes.std[name].shape == (150, 10)
        assert (codes.std[name] >= 0).all()
        np.testing.assert_allclose(codes.reconstruction[name], back[name], atol=1e-12)
        assert np.mean((values - back[name]) ** 2) < 0.05 * values.var()
    assert model.score(views) == codes.log_evidence.mean()


def test_a_missing_modality_may_be_left_out_none_or_nan(
    model: MSBDL, views: dict[str, Any]
) -> None:
    text = views["text"]
    nothing = np.full((150, 8), np.nan)
    answers = [
        model.transform(X)
        for X in ({"text": text}, {"text": text, "image": None}, [None, text], [nothing, text])
    ]
    assert (answers[0][:, :10] == 0).all()
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)


def test_order_of_modalities_threads_and_precision_change_nothing(
    model: MSBDL, views: dict[str, Any]
) -> None:
    turned = {name: views[name] for name in ("text", "image")}
    codes = model.transform(views)
    other = MSBDL(n_atoms=10, n_jobs=2).fit(turned)
    np.testing.assert_array_equal(codes, other.transform(turned))
    single = {name: values.astype(np.float32) for name, values in views.items()}
    np.testing.assert_allclose(codes, model.transform(single), atol=1e-3)


def test_file_pickle_and_copy_keep_every_bit(
    model: MSBDL, views: dict[str, Any], tmp_path: Path
) -> None:
    model.save(tmp_path / "model.safetensors")
    codes = model.transform(views)
    loaded = msbdl.load(tmp_path / "model.safetensors")
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(codes, other.transform(views))
        assert other.stop_reason_ == model.stop_reason_
    assert loaded.get_params()["n_atoms"] == {"image": 10, "text": 10}
    check_is_fitted(loaded)


def test_files_that_are_no_models(tmp_path: Path, model: MSBDL) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        msbdl.load(tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a complete model file"):
        msbdl.load(broken)
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "no" / "folder.safetensors")


def test_the_default_number_of_atoms() -> None:
    few = draw(60, {"a": 5, "b": 4}, 6)
    with pytest.warns(ConvergenceWarning):
        assert MSBDL(max_iter=1).fit(few).dictionaries_["a"].shape == (5, 6)
    many = draw(200, {"a": 5, "b": 4}, 6)
    with pytest.warns(ConvergenceWarning):
        assert MSBDL(max_iter=1).fit(many).dictionaries_["a"].shape == (5, 8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_groups_say_how_many_atoms_there_are() -> None:
    X, _ = draw_tree()
    model = MSBDL(prior="tree", groups=GROUPS, max_iter=3).fit(X)
    assert model.dictionaries_["leaf"].shape == (14, 12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("preset", ["auto", "paper"])
@pytest.mark.parametrize("prior", ["atom-to-subspace", "hierarchical", "tree"])
def test_given_groups_are_kept_when_a_fit_is_stopped(
    prior: str, preset: str, tmp_path: Path
) -> None:
    X, _ = draw_tree()
    leaves = [[7, 0], [1], [6, 3], [], [4], [2, 5]]
    groups = [{"root": [k], "leaf": own} if own else {"root": [k]} for k, own in enumerate(leaves)]
    pairs = [{"root": [k], "leaf": [5 - k]} for k in range(6)]
    for given in (groups, pairs):
        for stop in (1, 40, 10_000):
            model = MSBDL(prior=prior, preset=preset, groups=given, root="root")
            model.set_params(callback=lambda facts, stop=stop: facts["iteration"] >= stop)
            model.fit(X).save(tmp_path / "model.safetensors")
            for each in (model, msbdl.load(tmp_path / "model.safetensors")):
                assert each.groups_ == given
                atoms = each.dictionaries_["leaf"]
                assert atoms.shape == (14, sum(len(group.get("leaf", [])) for group in given))
                np.testing.assert_allclose(np.linalg.norm(atoms, axis=0), 1)
                assert np.isfinite(each.score(X))


def test_dictionaries_of_different_sizes() -> None:
    X, _ = draw_tree()
    model = MSBDL(prior="atom-to-subspace", **TREE).fit(X)
    assert model.groups_ == GROUPS
    assert model.dictionaries_["leaf"].shape == (14, 12)
    assert model.transform({"root": X["root"]}).shape == model.transform(X).shape == (300, 18)
    before = model.score(X)
    assert model.partial_fit(X).score(X) > before - 0.5
    learnt = MSBDL({"root": 6}, prior="atom-to-subspace", root="root", max_leaves=2).fit(X)
    assert sum(len(group["leaf"]) for group in learnt.groups_) == 12


def test_seeds(views: dict[str, Any]) -> None:
    def start(random_state: Any) -> Any:
        with pytest.warns(ConvergenceWarning, match="max_iter=2 was reached"):
            return MSBDL(5, max_iter=2, random_state=random_state).fit(views).dictionaries_["text"]

    assert (start(3) == start(3)).all()
    assert (start(3) != start(4)).any()
    assert (start(np.random.RandomState(1)) == start(np.random.RandomState(1))).all()
    assert (start(None) != start(None)).any()


def test_fits_that_do_not_converge_say_what_to_do() -> None:
    unsettled = 0
    for seed in range(12):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = MSBDL(n_atoms=20).fit(draw(30, {"a": 8, "b": 6}, 8, seed))
        told = [str(x.message) for x in caught if x.category is ConvergenceWarning]
        assert model.converged_ == (not told) == (model.stop_reason_ == "converged")
        for text in told:
            unsettled += "noise of some modality" in text and "more samples or fewer" in text
    assert unsettled > 0


def test_nothing_works_before_fit() -> None:
    for call in (MSBDL().transform, MSBDL().encode, MSBDL().inverse_transform, MSBDL().save):
        with pytest.raises(NotFittedError):
            call(np.zeros((3, 2)))
    assert not hasattr(MSBDL(), "dictionaries_")
