"""The two files that everything is made of, see fetch-sources.sh."""

import hashlib
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "sources"

_SHA256 = {
    # Debian bookworm, fonts-noto-color-emoji 2.042-0+deb12u1 (SIL Open Font License 1.1)
    "NotoColorEmoji.ttf": "e5899ed38b8ed83e08bd3ac5de09791e9d19d288333a796de1d35ad17396f1ec",
    # npm emoji-datasource-google 16.0.0 (MIT)
    "emoji.json": "1d602e65be88772bf8cc368ce16b855d719eeddbafe128d471b80203f494d29f",
}


def source_file(name: str) -> Path:
    """The path of one of the sources.

    Raises:
        SystemExit: it is not there, or not the one that the recipe was written for.
    """
    path = SOURCES / name
    if not path.exists():
        raise SystemExit(f"{path} is missing: run tools/train-emoji/fetch-sources.sh")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256[name]:
        raise SystemExit(f"{path} has the SHA-256 {found}; expected {_SHA256[name]}")
    return path
