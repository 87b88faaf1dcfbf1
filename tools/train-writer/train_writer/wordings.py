"""How wishes are worded: the frames of words/wordings.txt, a fifth of which training never sees."""

import re
from functools import cache
from zlib import crc32

from train_writer.knowledge import WORDS, split_list

_ONE_OF = 5
"""The share of a list's frames that is held out: one of so many."""


@cache
def all_frames() -> dict[str, list[str]]:
    """Every list by its name."""
    text = "\n".join(line for line in (WORDS / "wordings.txt").read_text().splitlines() if not line.startswith("# "))
    parts = re.split(r"^\[(.+)\]$", text, flags=re.MULTILINE)[1:]
    return {name: split_list(body.replace("\n", " | "), "|") for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def frames(name: str, unseen: bool) -> list[str]:
    """The frames of a list that training sees, or those that it never sees. What is only a slot is no wording."""
    every = all_frames()[name]
    wordings = sorted({frame for frame in every if not re.fullmatch(r"\{\w\}\W*", frame)}, key=_mixed)
    kept = set(wordings[: max(1, len(wordings) // _ONE_OF)])
    if name in ("hello", "anything", "system", "or"):  # whoever reads these knows them or not: nothing to learn from others
        return every
    return [frame for frame in every if (frame in kept) == unseen]


def _mixed(text: str) -> int:
    return crc32(text.encode())
