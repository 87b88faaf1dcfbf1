#!/usr/bin/env bash
# Builds libs/kinds/src/text/grammar/engine/grammar-engine.wasm: llguidance from crates.io, with llguidance.patch.
set -euo pipefail
cd "$(dirname "$0")"
target=${CARGO_TARGET_DIR:-target}
out=../../libs/kinds/src/text/grammar/engine/grammar-engine.wasm
version=$(sed -n 's/^llguidance = { version = "=\([^"]*\)".*/\1/p' Cargo.toml)
rm -rf "$target/llguidance" && mkdir -p "$target"
cargo fetch --quiet
cp -r ~/.cargo/registry/src/*/"llguidance-$version" "$target/llguidance"
patch -sp1 -d "$target/llguidance" <llguidance.patch
# Memory is given by JavaScript, which sets its maximum.
export RUSTFLAGS="-C link-arg=--import-memory -C link-arg=-zstack-size=16777216 -C link-arg=--max-memory=268435456 --remap-path-prefix=$HOME=/home"
cargo build --release --target wasm32-unknown-unknown --config "patch.crates-io.llguidance.path='$(realpath "$target")/llguidance'"
cp "$target/wasm32-unknown-unknown/release/grammar_engine.wasm" "$out"
sha256sum "$out"
