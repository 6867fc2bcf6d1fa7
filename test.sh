#!/usr/bin/env bash
# Checks everything: formatting, lints, tests of the library and the command, the demo, the README.
set -euo pipefail
cd "$(dirname "$0")"

cargo fmt --all --check
cargo clippy --release --workspace --all-targets -- -D warnings
cargo test --release --workspace
