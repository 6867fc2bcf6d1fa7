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
  CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=9" \
    cargo test --release --workspace --tests twins
fi
python/test.sh
