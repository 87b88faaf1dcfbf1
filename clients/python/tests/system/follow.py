"""Submits a request, and prints its events one by one: the next follows after a line on stdin.

`python follow.py blocking|async URL REQUEST`. The last line has the result, and how often the stream was opened.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from typing import Any

import httpx

from darkroom_client import AsyncDarkroom, Darkroom

streams_opened = 0


def count(request: httpx.Request) -> None:
    global streams_opened  # noqa: PLW0603
    streams_opened += request.url.path.endswith("/events")


async def count_async(request: httpx.Request) -> None:
    count(request)


def printable(event: Any) -> Any:
    """Return the event with a hash instead of an image's bytes."""
    if "data" not in event:
        return event
    return {**event, "data": hashlib.sha256(event["data"]).hexdigest()}


def show(event: Any) -> None:
    print(json.dumps(printable(event)), flush=True)
    sys.stdin.readline()


def show_result(events: list[Any], view: Any, images: list[Any]) -> None:
    result = {"again": [printable(event) for event in events], "view": view, "images": [printable(i) for i in images]}
    print(json.dumps({"type": "result", "streams_opened": streams_opened, **result}), flush=True)


def follow(url: str, request: Any) -> None:
    http_client = httpx.Client(event_hooks={"request": [count]})
    with http_client, Darkroom(url, http_client=http_client) as client:
        request_id = client.submit(**request)["request_id"]
        for event in client.stream(request_id):
            show(event)
        show_result(list(client.stream(request_id)), client.wait(request_id), client.images(request_id))


async def follow_async(url: str, request: Any) -> None:
    http_client = httpx.AsyncClient(event_hooks={"request": [count_async]})
    async with http_client, AsyncDarkroom(url, http_client=http_client) as client:
        request_id = (await client.submit(**request))["request_id"]
        async for event in client.stream(request_id):
            show(event)
        events = [event async for event in client.stream(request_id)]
        show_result(events, await client.wait(request_id), await client.images(request_id))


if __name__ == "__main__":
    kind, url, request = sys.argv[1:]
    if kind == "async":
        asyncio.run(follow_async(url, json.loads(request)))
    else:
        follow(url, json.loads(request))
