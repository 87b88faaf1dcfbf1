"""Downloads of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import connection_error
from .http import Connection, read_bytes, retrying, send
from .types import InputImage


async def fetch_image(connection: Connection, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an image with the bytes from its url, as `data`."""
    url, size = info["url"], info["bytes"]

    async def attempt(_failures: int) -> dict[str, Any]:
        response = await send(connection, url)
        data = await read_bytes(connection, response)
        # Without Content-Length, a truncated body looks complete. With it, a proxy may have recompressed the image.
        if len(data) < size and "content-length" not in response.headers:
            raise connection_error(f"GET {url.partition('?')[0]} returned {len(data)} of {size} bytes")
        content_type = response.headers.get("content-type", info["content_type"])
        return {**info, "content_type": content_type, "bytes": len(data), "data": data}

    return await retrying(connection, attempt)


async def fetch_input(connection: Connection, path: str) -> InputImage:
    """Fetch the input image at a path."""

    async def attempt(_failures: int) -> InputImage:
        response = await send(connection, path)
        data = await read_bytes(connection, response)
        return {"data": data, "content_type": response.headers.get("content-type", "")}

    return await retrying(connection, attempt)
