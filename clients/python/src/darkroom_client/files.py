"""Files in requests."""

from __future__ import annotations

import os
from typing import TypeAlias, TypeGuard

File: TypeAlias = bytes | os.PathLike[str]
"""An input file: its bytes, or its path, such as `Path("apple.png")`."""


def is_file(value: object) -> TypeGuard[File]:
    """Return True for bytes and paths; a string is a URL or a data URL."""
    return isinstance(value, (bytes, os.PathLike))
