"""Checks everything that X may be, and what happens to sample ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from msbdl import MSBDL, MSBDLClassifier, MultiView, PerView, SampleMismatchWarning


@pytest.fixture(scope="module")
def model(views: dict[str, Any]) -> MSBDL:
    return MSBDL(n_atoms=10).fit(views)


def test_lists_arrays_and_multiviews_are_the_same(model: MSBDL, views: dict[str, Any]) -> None:
    codes = model.transform(views)
    for X in (list(views.values()), tuple(views.values()), MultiView(views)):
        np.testing.assert_array_equal(codes, model.transform(X))
    listed = MSBDL(n_atoms=10).fit(list(views.values()))
    assert listed.modalities_ == ["view0", "view1"]
    np.testing.assert_array_equal(codes, listed.transform(list(views.values())))


def test_one_array_is_one_modality(views: dict[str, Any]) -> None:
    X = views["image"]
    model = MSBDL(n_atoms=10).fit(X)
    assert model.modalities_ == ["X"]
    assert list(model.get_feature_names_out()[:2]) == ["msbdl0", "msbdl1"]
    np.testing.assert_array_equal(model.transform(X), model.transform({"X": X}))
    back = model.inverse_transform(model.transform(X))
    assert isinstance(back, np.ndarray)
    assert np.mean((back - X) ** 2) < 0.05 * X.var()


def test_sparse_matrices_are_as_dense_ones(views: dict[str, Any], model: MSBDL) -> None:
    # More than one block of rows.
    many = {
        name: np.tile(np.where(values > 4, values, 0), (30, 1)) for name, values in views.items()
    }
    codes = model.transform(many)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.dok_array):
        few = {name: form(values[:50]) for name, values in many.items()}
        np.testing.assert_array_equal(codes[:50], model.transform(few))
    np.testing.assert_array_equal(
        codes, model.transform({name: sparse.csr_array(values) for name, values in many.items()})
    )
    np.testing.assert_array_equal(
        MSBDL(5, center=False).fit(sparse.csr_array(many["text"][:60])).dictionaries_["X"],
        MSBDL(5, center=False).fit(many["text"][:60]).dictionaries_["X"],
    )


def test_pandas_frames_are_matched_by_id(model: MSBDL, views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    ids = np.array([f"s{i}" for i in range(150)])
    image = pd.DataFrame(views["image"], index=ids)
    text = pd.DataFrame(views["text"], index=ids).iloc[::-1]
    np.testing.assert_array_equal(
        model.transform(views), model.transform({"image": image, "text": text})
    )
    with pytest.warns(SampleMismatchWarning, match="150 samples matched by id: 2 lack 'text'"):
        codes = model.encode({"image": image, "text": text.iloc[:-2]})
    assert list(codes.index) == list(ids)
    np.testing.assert_array_equal(codes.mean["text"][:2], 0)
    holes = views["text"].copy()
    holes[:2] = np.nan
    np.testing.assert_array_equal(codes.gamma, model.encode({**views, "text": holes}).gamma)


def test_ids_that_cannot_be_matched(views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    a = pd.DataFrame(views["image"], index=[f"a{i}" for i in range(150)])
    b = pd.DataFrame(views["text"], index=[f"b{i}" for i in range(150)])
    with pytest.raises(ValueError, match="'image': none of its sample ids occurs in another"):
        MultiView({"image": a, "text": b})
    twice = a.rename(index={"a1": "a0"})
    with pytest.raises(ValueError, match="'image': the sample id 'a0' occurs more than once"):
        MultiView({"image": twice, "text": b})
    other = a.iloc[::-1]
    with pytest.raises(ValueError, match="'text' has no sample ids, and those of 'image', 'more'"):
        MultiView({"image": a, "more": other, "text": views["text"]})
    # Equal ids in equal order need no matching, so plain arrays may stand beside them.
    assert MultiView({"image": a, "text": views["text"]}).index is not None


def test_row_numbers_are_ids_where_frames_were_filtered(views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    image, text = pd.DataFrame(views["image"]), pd.DataFrame(views["text"])
    with pytest.warns(SampleMismatchWarning, match="150 samples matched by id: 50 lack 'image'"):
        X = MultiView({"image": image[image.index % 3 > 0], "text": text})
    holes = views["image"].copy()
    holes[::3] = np.nan
    order = [int(row) for row in X.index]
    np.testing.assert_array_equal(X["text"], views["text"][order])
    np.testing.assert_array_equal(X["image"], holes[order])
    turned = image.iloc[::-1]
    for other in (turned, image.set_index(image.index + 1)):
        with pytest.raises(ValueError, match="'text' has the default index, but modality 'image'"):
            MultiView({"image": other, "text": text})
    with pytest.raises(ValueError, match="y has the default index, but X has other row numbers"):
        MSBDLClassifier(n_atoms=4).fit(
            {"image": turned, "text": text.iloc[::-1]}, pd.Series(views["image"][:, 0] > 3)
        )
    # Names and row numbers have nothing in common, so rows belong together.
    named = image.set_index(np.array([f"s{i}" for i in range(150)]))
    assert list(MultiView({"image": named, "text": text}).index[:2]) == ["s0", "s1"]
    words = text.set_index(np.array([str(i) for i in range(150)])).iloc[1:]
    with pytest.raises(ValueError, match=r"'image': none of .* \(for example 1; '1' in 'text'\)"):
        MultiView({"image": image.iloc[1:], "text": words})


def test_a_multiview_of_a_multiview_keeps_everything(views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    ids = [f"s{i}" for i in range(150)]
    first = MultiView(
        {name: pd.DataFrame(x, index=ids).add_prefix("f") for name, x in views.items()}
    )
    second = MultiView(first)
    assert list(second.index) == ids
    assert list(second.features["text"][:2]) == ["f0", "f1"]


def test_polars_frames(model: MSBDL, views: dict[str, Any]) -> None:
    pl = pytest.importorskip("polars")
    frames = {
        name: pl.DataFrame(values, schema=[f"f{i}" for i in range(values.shape[1])])
        for name, values in views.items()
    }
    np.testing.assert_array_equal(model.transform(views), model.transform(frames))


def test_multiview_is_a_small_container(views: dict[str, Any]) -> None:
    holes = views["text"].copy()
    holes[3] = np.nan
    X = MultiView({"image": views["image"], "text": holes})
    assert len(X) == 150
    assert X.shape == (150, 14)
    assert X.names == list(X) == ["image", "text"]
    assert "text" in X
    assert repr(X) == "MultiView(150 samples: image 8 features; text 6 features, 1 missing)"
    assert X["image"] is views["image"]
    assert X.missing().sum() == 1
    for rows in (slice(2, 5), [2, 3, 4], np.isin(np.arange(150), [2, 3, 4])):
        np.testing.assert_array_equal(X[rows]["text"], holes[2:5])
    assert len(X[7]) == 1
    assert X[[]].shape == (0, X.shape[1])
    with pytest.raises(IndexError, match="by a name or by rows"):
        X[:, 2]
    with pytest.raises(TypeError, match="PerView"):
        LinearRegression().fit(X, np.zeros(150))


def test_perview_leaves_missing_rows_alone(views: dict[str, Any]) -> None:
    holes = views["text"].copy()
    holes[3] = np.nan
    X = MultiView({"image": views["image"], "text": holes})
    scaled = PerView(StandardScaler()).fit_transform(X)
    assert np.isnan(scaled["text"][3]).all()
    np.testing.assert_allclose(np.nanmean(scaled["text"], axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled["text"], axis=0), 1)
    chosen = PerView({"image": PCA(2)}).fit(X)
    assert chosen.transform(X)["image"].shape == (150, 2)
    assert chosen.transform(X)["text"] is holes
    nothing = {"image": np.full((2, 8), np.nan)}
    assert np.isnan(chosen.transform(nothing)["image"]).all()
    with pytest.raises(ValueError, match="unknown modality 'sound'"):
        PerView({"sound": PCA(2)}).fit(X)
    with pytest.raises(TypeError, match="several modalities"):
        PerView(PCA(2)).fit(views["image"])


def named(values: Any, kind: str) -> Any:
    """The same matrix with named features."""
    names = [f"f{k}" for k in range(values.shape[1])]
    if kind == "anndata":
        anndata = pytest.importorskip("anndata")
        pd = pytest.importorskip("pandas")
        return anndata.AnnData(values, var=pd.DataFrame(index=names))
    frames = pytest.importorskip(kind)
    return frames.DataFrame(values, **{"schema" if kind == "polars" else "columns": names})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["pandas", "polars", "anndata"])
def test_features_are_those_of_the_fit(kind: str, views: dict[str, Any]) -> None:
    frames = {name: named(values, kind) for name, values in views.items()}
    turned = {
        "image": frames["image"][:, [1, 0, *range(2, 8)]]
        if kind != "pandas"
        else frames["image"].iloc[:, [1, 0, *range(2, 8)]]
    }
    text = "modality 'image': the features must be .* feature 0 is 'f1' instead of 'f0'"
    model = MSBDL(n_atoms=4, max_iter=5).fit(MultiView(frames)[:100])
    scaler = PerView(StandardScaler()).fit(frames)
    np.testing.assert_array_equal(model.transform(views), model.transform(frames))
    for call in (model.transform, model.partial_fit, scaler.transform):
        with pytest.raises(ValueError, match=text):
            call(turned)
    assert list(PerView({"text": PCA(2)}).fit_transform(frames).features) == ["image"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_anndata_is_one_modality(views: dict[str, Any]) -> None:
    frame = named(views["image"], "anndata")
    model = MSBDL(n_atoms=4, max_iter=5).fit(frame)
    assert model.modalities_ == ["X"]
    codes = model.encode(frame)
    assert list(codes.index[:2]) == ["0", "1"]
    np.testing.assert_array_equal(codes.mean["X"], model.transform(views["image"]))


BAD = np.arange(24.0).reshape(6, 4) ** 1.5
INFINITE, PARTLY, NO_ROW = BAD.copy(), BAD.copy(), BAD.copy()
INFINITE[2, 1] = np.inf
PARTLY[4, :2] = np.nan
NO_ROW[3] = np.nan


@pytest.mark.parametrize(
    ("X", "kind", "text"),
    [
        ({}, ValueError, "no modality was given"),
        ({"a": BAD, "": BAD}, ValueError, "a modality has an empty name"),
        ({"a": BAD, "b": BAD * 0}, ValueError, "modality 'b' is nought in every sample"),
        ({"a": NO_ROW, "b": NO_ROW}, ValueError, "row 3: every modality is missing"),
        ({"a": BAD, 3: BAD}, TypeError, "names of modalities are text, not 3"),
        ({"a": BAD, "b": None}, ValueError, "modality 'b' is None"),
        (
            {"a": BAD, "b": BAD[:5]},
            ValueError,
            "modality 'b' has 5 samples, but modality 'a' has 6",
        ),
        ({"a": BAD, "b": INFINITE}, ValueError, "modality 'b', row 2, column 1: .*infinite"),
        ({"a": BAD, "b": PARTLY}, ValueError, "modality 'b', row 4: 2 of 4 values are missing"),
        ({"a": BAD, "b": BAD * np.nan}, ValueError, "modality 'b' is missing in every sample"),
        ({"a": BAD, "b": np.ones((6, 2))}, ValueError, "modality 'b' is the same in every sample"),
        ({"a": BAD, "b": BAD[:, :0]}, ValueError, "modality 'b' has no features"),
        ({"a": BAD[:0], "b": BAD[:0]}, ValueError, "modality 'a' has no samples"),
        ({"a": BAD, "b": BAD[0]}, ValueError, "modality 'b': Expected 2D array"),
        ({"a": BAD, "b": [["x", "y"]] * 6}, ValueError, "modality 'b': .*convert"),
        ({"a": BAD, "b": BAD * 1j}, ValueError, "modality 'b': Complex data not supported"),
        ({"a": BAD * 1e200}, ValueError, "modality 'a' has values around"),
        ({"a": np.ma.masked_less(BAD, 3)}, TypeError, "modality 'a' is masked"),
        (np.zeros((1, 3)), ValueError, "1 sample"),
    ],
)
def test_bad_data_is_named(X: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        MSBDL(n_atoms=2).fit(X)


def test_what_is_no_multiview() -> None:
    for given in ([BAD, BAD], BAD, None):
        with pytest.raises(TypeError, match="made of a dict from names to matrices, not of"):
            MultiView(given)  # type: ignore[arg-type]
    assert len(MultiView(MultiView({"a": BAD}))) == 6
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="modality 'a' is a LazyFrame; collect it first"):
        MultiView({"a": pl.LazyFrame(BAD)})


def test_samples_with_ids_are_named_by_them() -> None:
    pd = pytest.importorskip("pandas")
    ids = list("uvwxyz")
    with pytest.raises(ValueError, match="modality 'b', sample 'y': 2 of 4 values are missing"):
        MSBDL(2).fit({"a": pd.DataFrame(BAD, index=ids), "b": pd.DataFrame(PARTLY, index=ids)})


TREE = {"n_atoms": {"a": 2}, "prior": "tree", "root": "a", "max_leaves": 2}


def grouped(first: list[int], second: list[int], **more: list[int]) -> dict[str, Any]:
    """Two branches, rooted in a, with these atoms of b."""
    groups = [{"a": [0], "b": first}, {"a": [1], "b": second, **more}]
    return {"n_atoms": None, "prior": "tree", "root": "a", "groups": groups}


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"n_atoms": 0}, ValueError, "n_atoms == 0, must be >= 1"),
        ({"n_atoms": 2.5}, TypeError, "n_atoms must be an instance of"),
        ({"n_atoms": {"a": 2, "c": 2}}, ValueError, "n_atoms: unknown modality 'c'"),
        ({"n_atoms": {"a": 2}}, ValueError, "n_atoms must be given for every modality"),
        ({"n_atoms": 50}, ValueError, "n_atoms: 50 atoms cannot be started from the 6 samples"),
        ({"n_atoms": 10**15}, ValueError, "10{15} atoms cannot be started from the 6 samples"),
        ({"preset": "fast"}, ValueError, "preset must be one of .*auto.*not 'fast'"),
        ({"preset": None}, TypeError, "preset must be text"),
        ({"prior": "flat"}, ValueError, "prior must be one of .*not 'flat'"),
        ({"prior": "tree", "groups": 3}, ValueError, "groups must be a list of branches"),
        ({"root": 1}, TypeError, "root must be text"),
        ({"max_leaves": 0}, ValueError, "max_leaves == 0, must be >= 1"),
        ({"schedule": "daily"}, ValueError, "schedule must be one of"),
        ({"posterior": "good"}, ValueError, "posterior must be one of"),
        ({"batch_size": 3}, ValueError, "batch_size must be used with the schedules"),
        ({"max_iter": 0}, ValueError, "max_iter == 0, must be >= 1"),
        ({"sigma_inf": 0.1}, ValueError, "sigma_inf must be left to the data"),
        ({"preset": "paper", "alpha": 2.0}, ValueError, "alpha must be between 0 and 1"),
        ({"preset": "paper", "sigma0": {"a": -1.0}}, ValueError, "sigma0 must be positive"),
        ({"preset": "paper", "alpha": 0.0}, ValueError, "alpha must be positive, not 0"),
        ({"preset": "paper", "sigma0": np.nan}, ValueError, "sigma0 must be positive, not NaN"),
        ({"preset": "paper", "sigma0": np.inf}, ValueError, "sigma0 must be positive, not inf"),
        ({"preset": "paper", "sigma0": {"c": 1.0}}, ValueError, "sigma0: unknown modality 'c'"),
        ({"preset": "paper", "sigma0": "low"}, TypeError, "sigma0 must be an instance of"),
        (
            {"preset": "paper", "sigma_inf": -0.5},
            ValueError,
            "sigma_inf must be positive",
        ),
        ({"n_atoms": {"a": 2, "b": 3}}, ValueError, "n_atoms must be the same number in every"),
        ({"n_atoms": {"a": 2, "b": -3}}, ValueError, "n_atoms of 'b' == -3, must be >= 1"),
        ({"batch_size": 0}, ValueError, "batch_size == 0, must be >= 1"),
        ({"preset": "msbdl-1", "batch_size": 7}, ValueError, "batch_size must be at most the num"),
        ({"n_jobs": 100_000}, ValueError, "n_jobs == 100000, must be <= 1024"),
        ({"root": "a"}, ValueError, "root must be used with another prior than one-to-one"),
        ({"max_leaves": 2}, ValueError, "max_leaves must be used with another prior"),
        (TREE | {"root": "c"}, ValueError, "root: unknown modality 'c'"),
        (TREE | {"root": None}, ValueError, "root must be given, or groups instead"),
        (TREE | {"max_leaves": None}, ValueError, "max_leaves must be given where the number"),
        (TREE | {"n_atoms": {"b": 3}}, ValueError, "n_atoms must be given for the root"),
        (TREE | {"n_atoms": {"a": 2, "b": 9}}, ValueError, "n_atoms must be from one to 2 for"),
        (grouped([0], [1], c=[1]), ValueError, "groups: unknown modality 'c'"),
        (
            grouped([0, 1], [1]),
            ValueError,
            "groups: atom 1 of modality 'b' is in branch 0 and",
        ),
        (grouped([0, 3], [1]), ValueError, "groups: atom 2 of modality 'b' is in no branch"),
        (grouped([0], [1], a=[1, 2]), ValueError, "groups: branch 1 has 2 atoms of the root"),
        ({"random_state": -1}, ValueError, "random_state == -1, must be >= 0"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"n_jobs": 1.5}, TypeError, "n_jobs must be an instance of"),
        ({"callback": 3}, TypeError, "callback must be callable, not 3"),
        ({"n_atoms": {"a": 2, "b": 10**30}}, ValueError, "n_atoms of 'b' == 1000"),
        ({"max_iter": 2**70}, ValueError, "max_iter == 11805"),
        ({"random_state": 2**70}, ValueError, "random_state == 11805"),
        ({"prior": "tree", "groups": {1}}, TypeError, "groups must hold whole numbers and names"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], kind: type[Exception], text: str) -> None:
    model = MSBDL(**{"n_atoms": 2, **settings})
    with pytest.raises(kind, match=text):
        model.fit({"a": BAD, "b": BAD**2})
    assert not hasattr(model, "dictionaries_")


def test_bad_data_at_transform(model: MSBDL, views: dict[str, Any]) -> None:
    image, text = views["image"], views["text"]
    table: list[tuple[Any, str]] = [
        ({"image": image, "sound": text}, "X: unknown modality 'sound'; the modalities are image"),
        ({"image": text}, "modality 'image' has 6 features, but the model was learnt on 8"),
        ([image], "X has 1 modalities, but the model has 2: 'image', 'text'"),
        ([image, text, text], "X has 3 modalities"),
        (image, "X is one array, but the model has 2 modalities"),
        ({"image": None}, "every modality is None"),
        ({"image": image * np.nan}, "row 0: every modality is missing"),
    ]
    for X, message in table:
        with pytest.raises(ValueError, match=message):
            model.transform(X)
    late = np.tile(image, (30, 1))
    late[4200] = np.inf
    with pytest.raises(ValueError, match="modality 'image', row 4200, column 0"):
        model.transform({"image": late})
    with pytest.raises(ValueError, match="X has 3 columns, but codes have 20"):
        model.inverse_transform(np.zeros((2, 3)))
