"""Runs every Python block of the README and of the guide, page by page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msbdl import MSBDLClassifier

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "python" / "README.md",
    *sorted((ROOT / "docs/guide").glob("*")),
]
BUNDLED = ROOT / "crates/msbdl-cli/data"


def tumours() -> dict[str, Any]:
    """Stands in for tcga_breast.npz where MSBDL_DATA names no folder that has it: its sizes."""
    rng = np.random.default_rng(0)
    subtypes = np.array(["Basal", "Her2", "LumA"])
    classes = rng.integers(3, size=220)
    factors = rng.normal(size=(220, 8)) + 2 * np.eye(3, 8)[classes]
    data: dict[str, Any] = {"y": subtypes[classes[:150]], "y_test": subtypes[classes[150:]]}
    for name, width in (("mrna", 200), ("mirna", 184), ("protein", 142)):
        values = factors @ rng.normal(size=(8, width)) + rng.normal(size=(220, width))
        data[name], data[f"{name}_test"] = values[:150], values[150:]
    return data


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_code_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))
    assert code
    if "msbdl fit" in code and shutil.which("msbdl") is None:
        pytest.skip("the command msbdl is not on the path")
    for name in re.findall(r'np\.load\("(\w+\.npz)"\)', code):
        found = [folder / name for folder in (BUNDLED, Path(os.environ.get("MSBDL_DATA", ".")))]
        source = next((file for file in found if file.exists()), None)
        if source is not None:
            shutil.copy(source, tmp_path)
        elif name == "tcga_breast.npz":
            np.savez(tmp_path / name, **tumours())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {"__name__": "page"})


def test_every_option_of_the_command_is_a_parameter() -> None:
    if shutil.which("msbdl") is None:
        pytest.skip("the command msbdl is not on the path")
    told = subprocess.run(["msbdl", "fit", "--help"], capture_output=True, text=True, check=True)
    options = set(re.findall(r"^ +--([a-z0-9-]+) ?(?:<|$)", told.stdout, flags=re.M))
    ours = {"atoms": "n_atoms", "seed": "random_state", "threads": "n_jobs", "no-center": "center"}
    # Where files are, how they are read, and what is printed.
    files = {"modality", "labels", "ids", "out", "quiet", "json"}
    assert len(options) > 20
    names = {ours.get(option, option.replace("-", "_")) for option in options - files}
    assert names <= set(MSBDLClassifier().get_params())
