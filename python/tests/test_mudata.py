"""Checks MuData and AnnData in, codes and atoms out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw
from scipy import sparse

from msbdl import MSBDL, fit_mudata

mudata = pytest.importorskip("mudata")
anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

VIEWS = draw(150, {"protein": 6, "rna": 8}, 10)
IDS = np.array([f"cell{i}" for i in range(150)])


@pytest.fixture
def data() -> Any:
    """Twenty cells lack the protein assay, and the rest come in another order."""

    def part(name: str, rows: Any, values: Any) -> Any:
        var = pd.DataFrame(index=[f"{name}{k}" for k in range(values.shape[1])])
        return anndata.AnnData(X=values[rows], obs=pd.DataFrame(index=IDS[rows]), var=var)

    rna = part("rna", np.arange(150), sparse.csr_matrix(VIEWS["rna"]))
    protein = part("protein", np.arange(149, 19, -1), VIEWS["protein"])
    return mudata.MuData({"rna": rna, "protein": protein})


def test_mudata_is_matched_by_sample(data: Any) -> None:
    holes = VIEWS["protein"].copy()
    holes[:20] = np.nan
    plain = MSBDL(n_atoms=10).fit({"protein": holes, "rna": VIEWS["rna"]})
    order = [int(name[4:]) for name in data.obs_names]
    expected = plain.transform({"protein": holes, "rna": VIEWS["rna"]})[order]
    np.testing.assert_allclose(plain.transform(data), expected, atol=1e-9)


def test_results_are_written_and_survive_the_file(data: Any, tmp_path: Path) -> None:
    model = fit_mudata(data, n_atoms=10, random_state=1)
    data.write(tmp_path / "data.h5mu")
    back = mudata.read(tmp_path / "data.h5mu")
    codes = model.encode(data)
    np.testing.assert_array_equal(back.obsm["msbdl"], model.transform(data))
    np.testing.assert_array_equal(back.obsm["msbdl_gamma"], codes.gamma)
    for name, part in back.mod.items():
        np.testing.assert_array_equal(part.varm["msbdl"], model.dictionaries_[name])
        rows = [list(data.obs_names).index(cell) for cell in part.obs_names]
        np.testing.assert_array_equal(part.obsm["msbdl"], codes.mean[name][rows])
    assert back.uns["msbdl"]["noise_variances"] == pytest.approx(model.noise_variances_)
    assert back.uns["msbdl"]["stop_reason"] == model.stop_reason_
    history = back.uns["msbdl"]["history"]
    np.testing.assert_array_equal(history["sigma"], model.history_["sigma"])
    assert list(history["stage"]) == list(model.history_["stage"])


def test_layers_and_one_anndata(data: Any) -> None:
    rna = data["rna"].copy()
    rna.layers["twice"] = 2 * rna.X
    model = fit_mudata(rna, n_atoms=5, layers="twice", key="d")
    assert rna.obsm["d"].shape == (150, 5)
    assert rna.varm["d"].shape == (8, 5)
    plain = fit_mudata(rna, n_atoms=5)
    twice, once = model.noise_variances_["X"], plain.noise_variances_["X"]
    assert twice == pytest.approx(4 * once, rel=1e-6)
    with pytest.raises(ValueError, match="no layer 'thrice'"):
        fit_mudata(rna, layers="thrice")
    with pytest.raises(ValueError, match="modality 'rna' has no layer 'thrice'"):
        fit_mudata(data, layers={"rna": "thrice"})
    with pytest.raises(ValueError, match="unknown modality 'dna'"):
        fit_mudata(data, layers={"dna": "x"})
    with pytest.raises(TypeError, match="a dict from modality to layer"):
        fit_mudata(data, layers="twice")


def test_what_is_neither_mudata_nor_anndata() -> None:
    with pytest.raises(TypeError, match="data must be a MuData or an AnnData, not dict"):
        fit_mudata(VIEWS)
