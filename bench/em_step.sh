#!/usr/bin/env bash
# Measures one exact EM iteration against batched NumPy, on one and on two threads.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release -q -p msbdl --example em_step
python3 -m venv target/bench-env
target/bench-env/bin/pip install --quiet numpy
for threads in 1 2; do
  OPENBLAS_NUM_THREADS=$threads OMP_NUM_THREADS=$threads \
    target/bench-env/bin/python bench/em_step.py target/release/examples/em_step "$threads"
  echo
done
