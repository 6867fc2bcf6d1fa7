"""Checks long fits: callbacks, progress, Ctrl-C, threads."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import draw
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from msbdl import MSBDL, MSBDLClassifier, MultiView
from msbdl._arrays import dense
from msbdl._threads import n_threads


def test_the_callback_sees_every_iteration_and_changes_nothing(views: dict[str, Any]) -> None:
    seen: list[dict[str, Any]] = []
    model = MSBDL(n_atoms=10, callback=seen.append).fit(views)
    assert [facts["iteration"] for facts in seen] == list(range(1, model.n_iter_ + 1))
    assert [facts["log_likelihood"] for facts in seen] == list(model.history_["log_likelihood"])
    assert seen[3]["sigma"] == dict(zip(["image", "text"], model.history_["sigma"][3], strict=True))
    assert seen[-1]["progress"] > 0.8
    assert seen[0]["stage"] == "temper"
    silent = MSBDL(n_atoms=10).fit(views)
    np.testing.assert_array_equal(silent.transform(views), model.transform(views))


def test_the_callback_stops_the_fit(views: dict[str, Any]) -> None:
    model = MSBDL(n_atoms=10, callback=lambda facts: facts["iteration"] == 7).fit(views)
    assert model.n_iter_ == 7
    assert model.stop_reason_ == "interrupted"
    assert not model.converged_


def test_an_exception_in_the_callback_comes_out_and_the_model_stays(views: dict[str, Any]) -> None:
    def fail(facts: dict[str, Any]) -> None:
        if facts["iteration"] == 5:
            raise LookupError("enough")

    model = MSBDL(n_atoms=10, callback=fail)
    with pytest.raises(LookupError, match="enough"):
        model.fit(views)
    assert model.stop_reason_ == "interrupted"
    assert model.transform(views).shape == (150, 20)


@pytest.fixture
def _listening() -> Any:
    """Shells start background jobs with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)


@pytest.mark.usefixtures("_listening")
def test_ctrl_c_leaves_the_model_so_far() -> None:
    X = MultiView(draw(4000, {"a": 60, "b": 50}, 200))
    model = MSBDL(n_atoms=200)
    press = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert pickle.loads(pickle.dumps(model)).stop_reason_ == "interrupted"
    # The whole fit has 570 iterations and takes a minute.
    assert 1 <= model.n_iter_ == len(model.history_["e_steps"]) < 400
    assert np.isfinite(model.dictionaries_["a"]).all()


@pytest.mark.usefixtures("_listening")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ctrl_c_ends_coding_and_batches_and_changes_nothing() -> None:
    # Coding takes many times as long as a pressed Ctrl-C waits at most, 50 ms.
    X = MultiView(draw(12_000, {"a": 60, "b": 50}, 200))
    model = MSBDL(n_atoms=80, max_iter=2).fit(X[:800])
    before = model.dictionaries_["a"]
    for work in (model.encode, model.partial_fit):
        start = time.perf_counter()
        copy.deepcopy(model).encode(X)
        whole = time.perf_counter() - start
        press = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT))
        start = time.perf_counter()
        press.start()
        with pytest.raises(KeyboardInterrupt):
            work(X)
        # A step begins with coding, so it takes longer than that.
        assert time.perf_counter() - start < 0.7 * whole
    np.testing.assert_array_equal(model.dictionaries_["a"], before)


def test_other_threads_run_during_a_fit(views: dict[str, Any]) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    model = MSBDL(n_atoms=30).fit(draw(300, {"a": 20, "b": 15}, 30))
    done.set()
    thread.join()
    assert model.n_iter_ > 0
    assert ticks > 20


def test_joblib_threads_and_processes_give_the_same(views: dict[str, Any]) -> None:
    def dictionary() -> Any:
        return MSBDL(n_atoms=10).fit(views).dictionaries_["text"]

    alone = dictionary()
    for prefer in ("threads", "processes"):
        for other in Parallel(n_jobs=2, prefer=prefer)(delayed(dictionary)() for _ in range(3)):
            np.testing.assert_array_equal(alone, other)


def test_doubles_in_rows_are_not_copied() -> None:
    # So large that what is looked up for threads, half a megabyte, is little beside it.
    X = np.random.default_rng(0).normal(size=(20_000, 100))
    for given in (X, {"a": X}, MultiView({"a": X})):
        model = MSBDL(n_atoms=2, callback=lambda _: True)
        tracemalloc.start()
        model.fit(given)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # The library's own copy, in its own units, is not Python's.
        assert most < 0.05 * X.nbytes, most
    assert dense(MultiView({"a": X}))[0][1] is X
    single = X.astype(np.float32)
    assert dense(MultiView({"a": single}))[0][1].dtype == np.float64


def test_what_is_told_is_in_the_units_of_the_data(views: dict[str, Any]) -> None:
    told: list[Any] = []
    scaled = {"image": views["image"], "text": 1000 * views["text"]}
    for X in (views, scaled):
        seen: list[Any] = []
        model = MSBDL(n_atoms=10, callback=lambda facts, seen=seen: seen.append(facts["sigma"]))
        told.append((seen, model.fit(X).history_["sigma"]))
    for k, (small, large) in enumerate(zip(told[0][0], told[1][0], strict=True)):
        assert large["image"] == pytest.approx(small["image"], rel=1e-6)
        assert large["text"] == pytest.approx(1000 * small["text"], rel=1e-6)
        np.testing.assert_allclose(told[1][1][k], [large["image"], large["text"]])
    # The last iteration but the end's own.
    final = np.sqrt([*model.noise_variances_.values()])
    np.testing.assert_allclose(told[1][1][-1], final, rtol=0.5)


def test_threads_keep_to_the_limits() -> None:
    with threadpool_limits(1):
        assert n_threads(None) == 1
        assert n_threads(3) == 3
    assert n_threads(-1) == len(os.sched_getaffinity(0))
    assert n_threads(-1000) == 1


def test_progress_is_shown(views: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    MSBDL(n_atoms=10, verbose=1).fit(views)
    shown = capsys.readouterr().err
    assert "msbdl: 100%" in shown
    assert "noise image" in shown


def test_progress_without_tqdm(
    views: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    now = iter(range(10_000))
    monkeypatch.setattr("msbdl._progress.time.monotonic", lambda: float(next(now)))
    MSBDL(n_atoms=10, verbose=1).fit(views)
    lines = capsys.readouterr().err.splitlines()
    assert lines[50].startswith("msbdl: ")
    assert " s left, temper, iteration 51, noise image " in lines[50]


def test_warnings_point_at_the_caller(views: dict[str, Any]) -> None:
    pd = pytest.importorskip("pandas")
    y = np.arange(150) % 2
    some = {"image": pd.DataFrame(views["image"], index=range(1, 151)), "text": views["text"][:149]}
    some["text"] = pd.DataFrame(some["text"], index=range(1, 150))
    calls = [
        lambda: MSBDL(5, max_iter=2).fit(views),
        lambda: MSBDL(5, max_iter=2).fit_transform(views),
        lambda: MSBDL(5, max_iter=2).partial_fit(views),
        lambda: MSBDLClassifier(5, max_iter=2).fit(views, y),
        lambda: MSBDLClassifier(5, max_iter=2).partial_fit(views, y, classes=[0, 1]),
        lambda: MultiView(some),
        lambda: MSBDL(5, callback=lambda _: True).fit(some),
    ]
    for call in calls:
        with pytest.warns(match="has not converged|matched by id") as caught:
            call()
        assert {Path(each.filename).name for each in caught} <= {"test_run.py", "base.py"}


def test_import_brings_nothing_that_scikit_learn_does_not() -> None:
    code = """
import sys, sklearn.utils.estimator_checks
before = set(sys.modules)
import msbdl
print(*(set(sys.modules) - before))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in run.stdout.split()} == {"msbdl"}
