#!/usr/bin/env bash
# Checks the Python package: builds the wheel, installs it into clean environments, tests it there.
set -euo pipefail
cd "$(dirname "$0")"
envs=../target/python
# Otherwise scikit-learn skips one of its checks.
export SCIPY_ARRAY_API=1 MPLBACKEND=agg PIP_DISABLE_PIP_VERSION_CHECK=1

# The pages of the guide run the command, which the tests of the workspace have built.
[ -x ../target/release/msbdl ] || cargo build --quiet --release --locked -p msbdl-cli
export PATH="$PWD/../target/release:$PATH"

python3 -m venv --clear $envs/new
$envs/new/bin/pip install --quiet "maturin>=1.9,<2" -r requirements-test.txt
rm -rf $envs/wheels
$envs/new/bin/maturin build --quiet --release --locked --out $envs/wheels
$envs/new/bin/pip install --quiet $envs/wheels/*.whl
# Away from the sources, so that it is the wheel that is tested.
(cd $envs && new/bin/python -m pytest --quiet -c ../../python/pyproject.toml ../../python/tests)
$envs/new/bin/ruff check --quiet .
$envs/new/bin/ruff format --quiet --check .
$envs/new/bin/mypy --strict msbdl
(cd $envs && new/bin/python -m mypy.stubtest msbdl._core)

python3 -m venv --clear $envs/oldest
$envs/oldest/bin/pip install --quiet -r requirements-oldest.txt $envs/wheels/*.whl
(cd $envs && oldest/bin/python -m pytest --quiet -c ../../python/pyproject.toml ../../python/tests)
