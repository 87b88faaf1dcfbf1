"""Blocking and asynchronous input and output. The rest of the client is written once, over `Transport`."""

from __future__ import annotations

import os
from asyncio import sleep as sleep_async
from asyncio import to_thread
from collections.abc import AsyncGenerator, Coroutine, Generator
from pathlib import Path
from time import sleep as sleep_blocking
from typing import Any, Protocol, TypeVar, cast

import httpx

T = TypeVar("T")


class Transport(Protocol):
    """Sends requests and waits. Its functions raise httpx's errors."""

    def build(self, method: str, url: str, **parts: Any) -> httpx.Request:
        """Build a request with the defaults of the HTTP client."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Return when the response begins."""
        ...

    def parts(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Yield the parts of a body as they arrive."""

    async def close(self, response: httpx.Response) -> None:
        """Close a response, and its connection if the body was not read to its end."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def read_file(self, path: os.PathLike[str]) -> bytes:
        """Return the content of a file."""
        ...


class BlockingTransport:
    """Blocks in each function, so its coroutines never suspend: `run` completes them without an event loop."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def build(self, method: str, url: str, **parts: Any) -> httpx.Request:
        return self.client.build_request(method, url, **parts)

    async def send(self, request: httpx.Request) -> httpx.Response:
        return self.client.send(request, stream=True, follow_redirects=True)

    async def parts(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        for part in response.iter_bytes():
            yield part

    async def close(self, response: httpx.Response) -> None:
        response.close()

    async def sleep(self, seconds: float) -> None:
        sleep_blocking(seconds)

    async def read_file(self, path: os.PathLike[str]) -> bytes:
        return Path(path).read_bytes()


class AsyncTransport:
    """Runs on asyncio."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    def build(self, method: str, url: str, **parts: Any) -> httpx.Request:
        return self.client.build_request(method, url, **parts)

    async def send(self, request: httpx.Request) -> httpx.Response:
        return await self.client.send(request, stream=True, follow_redirects=True)

    async def parts(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        async for part in response.aiter_bytes():
            yield part

    async def close(self, response: httpx.Response) -> None:
        await response.aclose()

    async def sleep(self, seconds: float) -> None:
        await sleep_async(seconds)

    async def read_file(self, path: os.PathLike[str]) -> bytes:
        return await to_thread(Path(path).read_bytes)


def run(steps: Coroutine[Any, Any, T]) -> T:
    """Complete a coroutine over a `BlockingTransport`."""
    try:
        steps.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise RuntimeError("a blocking transport suspended")


def iterate(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate over an asynchronous generator over a `BlockingTransport`, and close it when the loop is left."""
    try:
        while True:
            try:
                item = run(items.__anext__())
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(items.aclose())
