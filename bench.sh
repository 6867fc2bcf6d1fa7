#!/usr/bin/env bash
# Measures everything, or the parts named, against the peers and writes bench/RESULTS.md and bench/times.svg.
set -euo pipefail
cd "$(dirname "$0")"

cargo build --release --quiet -p msbdl-cli
cargo build --release --quiet -p msbdl --examples
python3 -m venv target/bench-env
target/bench-env/bin/pip install --quiet numpy scikit-learn spams-bin dictlearn matplotlib threadpoolctl
target/bench-env/bin/python bench/run.py "$@"
