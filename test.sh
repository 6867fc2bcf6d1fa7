#!/usr/bin/env bash
# Checks everything: formatting, lints, tests of the library and the command, the demo, the README,
# the Python package.
set -euo pipefail
cd "$(dirname "$0")"

cargo fmt --all --check
cargo clippy --release --workspace --all-targets -- -D warnings
# Examples are checked above and need not be built.
cargo test --release --workspace --tests
cargo test --release --workspace --doc
# The kernels are the unsafe part: every load and store of theirs is checked where that is possible.
if command -v valgrind >/dev/null; then
  unit_tests=$(cargo test --quiet --release --workspace --tests --no-run --message-format=json |
    grep '"kind":\["lib"\].*msbdl/src/lib.rs' | grep -o '"executable":"[^"]*"' | cut -d'"' -f4)
  valgrind --quiet --error-exitcode=9 "$unit_tests" twins
fi
python/test.sh
