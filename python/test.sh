#!/usr/bin/env bash
# Checks the Python package: builds the wheel, installs it into clean environments, tests it there.
set -euo pipefail
cd "$(dirname "$0")"
envs=../target/python
# Otherwise scikit-learn skips one of its checks.
export SCIPY_ARRAY_API=1 MPLBACKEND=agg PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf $envs
mkdir -p $envs

# The pages of the guide run the command.
cargo build --quiet --release --locked -p msbdl-cli
export PATH="$PWD/../target/release:$PATH"

python3 -m venv $envs/new
pip="$envs/new/bin/pip install --quiet --no-compile"
$pip "maturin>=1.9,<2" -r requirements-test.txt
$envs/new/bin/maturin build --quiet --release --locked --out $envs/wheels

# Away from the sources, so that it is the wheel that is tested.
test_wheel() {
  (cd $envs && "$1/bin/python" -m pytest --quiet -c ../../python/pyproject.toml -p no:cacheprovider ../../python/tests)
}
test_oldest() {
  python3 -m venv $envs/oldest
  $envs/oldest/bin/pip install --quiet --no-compile -r requirements-oldest.txt $envs/wheels/*.whl
  test_wheel oldest
}
# Beside the rest, since most tests use one core.
test_oldest >$envs/oldest.log 2>&1 &
oldest=$!
$pip $envs/wheels/*.whl
test_wheel new
$envs/new/bin/ruff check --quiet .
$envs/new/bin/ruff format --quiet --check .
$envs/new/bin/mypy --strict msbdl
(cd $envs && new/bin/python -m mypy.stubtest msbdl._core)
wait $oldest || { cat $envs/oldest.log; exit 1; }
tail -n 1 $envs/oldest.log
