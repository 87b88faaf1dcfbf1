"""Converts the text events of a request to those that `stream` yields."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from .api_types import DeltaEvent, SnapshotEvent, TextEndEvent
from .errors import DarkroomError
from .http import Connection, get_json, request_path
from .text_log import decode, units_after
from .types import TextChange, TextEvent

# Fields that belong to exactly the chunk that was sent.
CHUNK_METADATA = ("token_ids", "nfe", "logprobs")


@dataclass
class OpenText:
    """A text, built from its events. Offsets count UTF-16 units."""

    start: int
    """Offset of `units`: 0, unless the stream started in the middle."""
    yielded_to: int
    """Offset up to which the text was yielded as deltas; initially the stream's start."""
    units: bytes = b""
    """The current text as UTF-16, including a block that is being written."""

    @property
    def end(self) -> int:
        """Offset of its end."""
        return self.start + len(self.units) // 2

    def slice(self, begin: int, end: int) -> str:
        """Return the text between two offsets."""
        return decode(self.units[max(0, 2 * (begin - self.start)) : 2 * (end - self.start)])

    def apply(self, event: TextChange) -> None:
        """Change the text."""
        if event["offset"] < self.start:
            self.start, self.units = event["offset"], b""
        self.units = units_after(self.units, event, event["offset"] - self.start)


class TextReader:
    """Works with offsets: a worker that takes over writes text again, and a compacted log starts with a snapshot."""

    def __init__(self, connection: Connection, request_id: str) -> None:
        self._connection = connection
        self._request_id = request_id
        self._texts: dict[int, OpenText] = {}
        self._ended: set[int] = set()

    def chunks(self, event: TextChange) -> Generator[TextChange, None, None]:
        """Yield each chunk once; text before an event's offset is unchanged."""
        offset = event["offset"]
        text = self._texts.setdefault(event["index"], OpenText(offset, offset))
        text.apply(event)
        if event["type"] == "reset":
            text.yielded_to = min(text.yielded_to, offset)
            yield event
            return
        yield from _new_deltas(text, event, text.end if event["type"] == "delta" else offset)
        if event["type"] == "snapshot" and text.end > text.yielded_to:
            rest = {"offset": text.yielded_to, "text": text.slice(text.yielded_to, text.end)}
            yield cast("SnapshotEvent", {**_sent_fields(event, text.yielded_to == offset), **rest})

    async def end(self, event: TextEndEvent) -> AsyncGenerator[DeltaEvent | TextEvent, None]:
        """Yield the rest of the text, then the complete text; fetch it if the stream missed its first part."""
        index = event["index"]
        if index in self._ended:
            return
        self._ended.add(index)
        text = self._texts.get(index)
        complete: str | None = None
        if text is not None:
            common = {name: event[name] for name in ("id", "request_id", "timestamp", "index")}
            for delta in _new_deltas(text, common, text.end):
                yield delta
            complete = text.slice(text.start, text.end)
        # Without its first part, a text has fewer bytes.
        if complete is None or len(complete.encode("utf-8", "surrogatepass")) != event["bytes"]:
            complete = await self._fetch(index)
        if complete is not None:
            yield cast("TextEvent", {**event, "text": complete})

    async def _fetch(self, index: int) -> str | None:
        """Fetch a text. Return None if it has expired."""
        try:
            view = await get_json(self._connection, request_path(self._request_id))
        except DarkroomError as error:
            if error.status in (404, 410):
                return None
            raise
        texts = view.get("texts", [])
        return texts[index]["text"] if index < len(texts) else None


def _new_deltas(text: OpenText, event: Mapping[str, Any], until: int) -> Generator[DeltaEvent, None, None]:
    """Yield final text that was not yielded before."""
    begin = text.yielded_to
    if until <= begin:
        return
    text.yielded_to = until
    is_exact_chunk = event.get("type") == "delta" and event["offset"] == begin
    fields = {"type": "delta", "offset": begin, "text": text.slice(begin, until)}
    yield cast("DeltaEvent", {**_sent_fields(event, is_exact_chunk), **fields})


def _sent_fields(event: Mapping[str, Any], is_exact_chunk: bool) -> dict[str, Any]:
    """Return the fields of an event, without metadata of another chunk."""
    return {name: value for name, value in event.items() if is_exact_chunk or name not in CHUNK_METADATA}
