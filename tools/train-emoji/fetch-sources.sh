#!/usr/bin/env bash
# Fetches what the training pictures are made of into sources/ (or the folder named): Noto Color Emoji from Debian's
# package and the table of emoji names from npm. Neither is installed; train_emoji/sources.py checks the hashes.
set -euo pipefail
target=${1:-$(dirname "$0")/sources}
mkdir -p "$target"
target=$(cd "$target" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

apt-get download fonts-noto-color-emoji=2.042-0+deb12u1
dpkg-deb -x fonts-noto-color-emoji_*.deb .
cp usr/share/fonts/truetype/noto/NotoColorEmoji.ttf "$target"

npm pack --silent emoji-datasource-google@16.0.0
tar xzf emoji-datasource-google-16.0.0.tgz package/emoji.json
cp package/emoji.json "$target"
