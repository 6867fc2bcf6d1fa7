"""Holds the estimators to scikit-learn's own rules."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from msbdl import MSBDL, MSBDLClassifier, MSBDLTagger, MultiView, PerView


@pytest.mark.parametrize("kind", [MSBDL, MSBDLClassifier, MSBDLTagger])
def test_every_check_of_scikit_learn_passes(kind: Any) -> None:
    with warnings.catch_warnings():
        # Most of its data are pure noise, on which nothing converges.
        warnings.simplefilter("ignore")
        results = check_estimator(kind(), on_skip=None, on_fail=None)
    bad = [
        (x["check_name"], x["status"], x["exception"]) for x in results if x["status"] != "passed"
    ]
    assert len(results) > 40
    assert not bad


def labelled(views: dict[str, Any]) -> tuple[MultiView, Any]:
    return MultiView(views), (views["image"][:, 0] > np.median(views["image"][:, 0])).astype(int)


def test_splitting_keeps_modalities_and_labels_together(views: dict[str, Any]) -> None:
    X, y = labelled(views)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert len(train) == len(y_train) > len(test) == len(y_test)
    for part, labels in ((train, y_train), (test, y_test)):
        for i in range(len(part)):
            row = np.flatnonzero((views["text"] == part["text"][i]).all(axis=1))
            assert (views["image"][row[0]] == part["image"][i]).all()
            assert y[row[0]] == labels[i]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_a_pipeline_of_several_modalities(views: dict[str, Any]) -> None:
    X, y = labelled(views)
    pipeline = make_pipeline(PerView(StandardScaler()), MSBDL(n_atoms=10), LogisticRegression())
    sizes = [5, {"image": 10, "text": 10}]
    search = GridSearchCV(pipeline, {"msbdl__n_atoms": sizes}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.7
    assert search.predict(X[:4]).shape == (4,)
    sizes, _, scores = learning_curve(pipeline, X, y, cv=3, train_sizes=[0.5, 1.0])
    assert scores.shape == (2, 3)
    assert sizes[1] == 100


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cross_validation_scores_the_evidence(views: dict[str, Any]) -> None:
    X = MultiView(views)
    right = cross_val_score(MSBDL(n_atoms=10), X, cv=3).mean()
    wrong = cross_val_score(MSBDL(n_atoms=2), X, cv=3).mean()
    assert right > wrong + 1


def test_clone_and_parameters() -> None:
    model = MSBDL(n_atoms={"a": 3}, preset="paper", sigma0=0.5, n_jobs=2)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "n_features_in_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_output_as_a_frame(views: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    model = MSBDL(n_atoms=3).set_output(transform="pandas").fit(views)
    frame = model.transform(MultiView(views))
    assert list(frame.columns[:4]) == [
        "image_msbdl0",
        "image_msbdl1",
        "image_msbdl2",
        "text_msbdl0",
    ]
    assert list(frame.columns) == list(model.get_feature_names_out())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_output_as_a_polars_frame_and_its_names(views: dict[str, Any]) -> None:
    pytest.importorskip("polars")
    pipeline = make_pipeline(PerView({"text": PCA(2)}), MSBDL(n_atoms=3))
    frame = pipeline.set_output(transform="polars").fit_transform(MultiView(views))
    assert frame.columns == list(pipeline.get_feature_names_out())
    assert frame.columns[2:4] == ["image_msbdl2", "text_msbdl0"]
    names = list(pipeline[0].get_feature_names_out())
    assert names[7:] == ["image_x7", "text_pca0", "text_pca1"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_frames_keep_the_sample_ids(views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    ids = [f"s{i}" for i in range(150)]
    frames = {name: pd.DataFrame(values, index=ids) for name, values in views.items()}
    frames["text"] = frames["text"].iloc[::-1]
    pipeline = make_pipeline(PerView(StandardScaler()), MSBDL(n_atoms=3))
    pipeline.set_output(transform="pandas")
    assert list(pipeline.fit_transform(frames).index) == ids
    some = pipeline.transform(MultiView(frames)[[7, 3]])
    assert list(some.index) == ["s7", "s3"]
    assert list(some.columns) == list(pipeline[-1].get_feature_names_out())
    np.testing.assert_array_equal(some, pipeline.transform(frames).loc[["s7", "s3"]])
    assert list(pipeline[-1].inverse_transform(some).index) == ["s7", "s3"]
    alone = MSBDL(n_atoms=3).set_output(transform="pandas").fit_transform(frames["image"])
    assert list(alone.index) == ids
