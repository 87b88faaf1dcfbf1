"""Changes of a text. Offsets count UTF-16 units, as strings of JavaScript do: one emoji is two."""

from __future__ import annotations

from .types import TextChange


def encode(text: str) -> bytes:
    """Return two bytes per UTF-16 unit."""
    return text.encode("utf-16-le", "surrogatepass")


def decode(units: bytes) -> str:
    """Return the text of UTF-16 units."""
    return units.decode("utf-16-le", "surrogatepass")


def text_after(text: str, change: TextChange) -> str:
    """Return the text after a change.

    `delta` appends, `snapshot` replaces the text from its offset on, `reset` cuts it there. A repeated change has no
    effect; a delta behind a gap, where changes were lost, is ignored.

    Example:
        text = ""
        for event in client.stream(request_id):
            if event["type"] in ("delta", "snapshot", "reset"):
                text = text_after(text, event)

    """
    return decode(units_after(encode(text), change, change["offset"]))


def units_after(units: bytes, change: TextChange, offset: int) -> bytes:
    """Return the encoded text after a change at an offset in it."""
    start = 2 * offset
    if change["type"] == "reset":
        return units[:start]
    added = encode(change["text"])
    if change["type"] == "snapshot":
        return units[:start] + added
    return units if start > len(units) else units + added[len(units) - start :]
