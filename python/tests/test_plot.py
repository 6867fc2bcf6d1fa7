"""Draws every plot and looks at what it draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import TREE, draw_tree

from msbdl import MSBDL, Codes, MSBDLClassifier

plt = pytest.importorskip("matplotlib.pyplot")
from msbdl import plot  # noqa: E402


@pytest.fixture(autouse=True)
def _close() -> Any:
    yield
    plt.gcf().canvas.draw()
    plt.close("all")


@pytest.fixture(scope="module")
def model(views: dict[str, Any]) -> MSBDL:
    return MSBDL(n_atoms=10).fit(views)


@pytest.fixture(scope="module")
def codes(model: MSBDL, views: dict[str, Any]) -> Codes:
    return model.encode(views)


def test_history(model: MSBDL) -> None:
    upper, lower = plot.history(model)
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), model.history_["log_likelihood"])
    for j, name in enumerate(model.modalities_):
        assert lower.lines[j].get_label() == name
        np.testing.assert_array_equal(lower.lines[j].get_ydata(), model.history_["sigma"][:, j])
    assert {"temper", "select"} <= {text.get_text() for text in upper.texts}


def test_atoms(model: MSBDL) -> None:
    axes = plot.atoms(model, which=[3, 5], shapes={"image": (2, 4)})
    assert axes.shape == (2, 2)
    shown = axes[0, 1].images[0].get_array()
    np.testing.assert_array_equal(shown, model.dictionaries_["image"][:, 5].reshape(2, 4))
    line = axes[1, 0].lines[1].get_ydata()
    np.testing.assert_array_equal(line, model.dictionaries_["text"][:, 3])
    assert [axis.get_title() for axis in axes[0]] == ["atom 3", "atom 5"]
    assert plot.atoms(model).shape == (2, 8)
    with pytest.raises(ValueError, match="3 x 3 does not fit the 8 features of modality 'image'"):
        plot.atoms(model, shapes={"image": (3, 3)})
    with pytest.raises(ValueError, match="unknown modality 'sound'"):
        plot.atoms(model, shapes={"sound": (3, 3)})


def test_usage(codes: Codes) -> None:
    upper, lower = plot.usage(codes)
    heights = [bar.get_height() for bar in upper.patches]
    assert heights == sorted(heights, reverse=True)
    assert sum(heights) == pytest.approx((codes.gamma > 0).sum() / 150, rel=0.2)
    total = (codes.mean["text"] ** 2).mean(axis=0).sum()
    assert lower.lines[1].get_ydata().sum() == pytest.approx(total)


def test_sparsity(codes: Codes) -> None:
    axes = plot.sparsity(codes)
    assert sum(bar.get_height() for bar in axes.patches) == 150
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    np.testing.assert_allclose(middles, np.arange(len(middles)), atol=1e-12)


def test_coactivation(codes: Codes) -> None:
    shown = plot.coactivation(codes, "image", "text").images[0].get_array()
    expected = np.corrcoef(np.abs(codes.mean["image"][:, 2]), np.abs(codes.mean["text"][:, 7]))
    assert shown[2, 7] == pytest.approx(expected[0, 1])
    # Supports are shared, so the diagonal stands out.
    assert np.diag(shown).min() > np.abs(shown - np.diag(np.diag(shown))).mean()
    with pytest.raises(ValueError, match="unknown modality 'sound'; the codes have image, text"):
        plot.coactivation(codes, "image", "sound")


def test_coactivation_of_roots_and_leaves() -> None:
    X, _ = draw_tree()
    model = MSBDL(prior="atom-to-subspace", **TREE).fit(X)
    axes = plot.coactivation(model.encode(X), "root", "leaf")
    shown = axes.images[0].get_array()
    assert shown.shape == (6, 12)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("atoms of root", "atoms of leaf")
    # A root's row is brightest in its own two leaves.
    own = np.kron(np.eye(6), np.ones(2)).astype(bool)
    assert shown[own].min() > np.abs(shown[~own]).max()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_confusion(views: dict[str, Any]) -> None:
    y = np.where(views["image"][:, 0] > 3, "high", "low")
    model = MSBDLClassifier(n_atoms=10).fit(views, y)
    axes = plot.confusion(model, views, y)
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(shown.sum(axis=1), 1)
    assert shown[0, 0] == pytest.approx((model.predict(views)[y == "high"] == "high").mean())


def test_codes_are_not_models(views: dict[str, Any]) -> None:
    for draw in (plot.usage, plot.sparsity):
        with pytest.raises(TypeError, match="codes must be what encode returns, not MSBDL"):
            draw(MSBDL())
