"""The events of a request with complete images and texts."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from .api_types import ImageChunkEvent, ImagesSucceededEvent
from .errors import DarkroomError
from .http import Connection
from .images import fetch_image
from .resume_events import resume_events
from .texts import TextReader
from .types import ImageEvent, RequestEvent

CHUNK_FIELDS = frozenset({"chunk_id", "chunk_index", "total_chunks", "is_chunked", "is_final", "b64"})


async def stream(connection: Connection, request_id: str, after: str | None) -> AsyncGenerator[RequestEvent, None]:
    """Yield the events after the event `after`, or all, as `resume_events`."""
    images = ImageReader(connection, after)
    texts = TextReader(connection, request_id)
    async with aclosing(resume_events(connection, request_id, after)) as events:
        async for event in events:
            if event["type"] == "image":
                image = await images.add_chunk(event)
                if image is not None:
                    yield image
            elif event["type"] == "delta" or event["type"] == "snapshot" or event["type"] == "reset":
                for change in texts.chunks(event):
                    yield change
            elif event["type"] == "text":
                async for text in texts.end(event):
                    yield text
            else:
                if "images" in event:
                    async for image in images.missing(event):
                        yield image
                yield event
            images.last_id = event["id"]


class ImageReader:
    """Joins the chunks of images, and fetches images whose chunks were missed."""

    def __init__(self, connection: Connection, after: str | None) -> None:
        self.last_id = after or "0-0"
        """The id of the latest event."""
        self._connection = connection
        self._is_complete_log = after is None
        self._open: dict[int, list[bytes]] = {}
        self._delivered: set[int] = set()

    async def add_chunk(self, event: ImageChunkEvent) -> ImageEvent | None:
        """Return the image with its last chunk; None before, and if it does not exist (any more).

        Chunks of several images may be interleaved, each image's in order.
        """
        index = event["index"]
        # A lost worker's image is sent again from its first chunk.
        parts = self._open.get(index, []) if event["chunk_index"] > 0 else []
        parts.append(_decode_base64(event["b64"]))
        self._open[index] = parts
        if event["chunk_index"] < event["total_chunks"] - 1:
            return None
        data = b"".join(parts)
        fields = {name: value for name, value in event.items() if name not in CHUNK_FIELDS}
        try:
            if len(data) == event["bytes"]:
                del self._open[index]
                image = cast("ImageEvent", {**fields, "data": data})
            else:
                image = cast("ImageEvent", await fetch_image(self._connection, fields))
        except DarkroomError as error:
            # Another attempt makes it again (409), or the request ended without it (404): later events show which.
            if error.status in (404, 409):
                return None
            raise
        self._delivered.add(index)
        return image

    async def missing(self, event: ImagesSucceededEvent) -> AsyncGenerator[ImageEvent, None]:
        """Fetch the images of a request that has succeeded, without those that came before."""
        for info in event["images"]:
            index = info["index"]
            if index not in self._delivered and (self._is_complete_log or index in self._open):
                common = {"type": "image", "id": self.last_id, **{f: event[f] for f in ("request_id", "timestamp")}}
                yield cast("ImageEvent", await fetch_image(self._connection, {**common, **info}))


def _decode_base64(b64: str) -> bytes:
    """Return no bytes for text that is not base64."""
    try:
        return base64.b64decode(b64, validate=True)
    except (ValueError, TypeError):
        return b""
