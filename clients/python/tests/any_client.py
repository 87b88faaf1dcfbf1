"""Runs the same calls on both clients."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable
from typing import Any, Protocol

from darkroom_client import AsyncDarkroom, Darkroom, RequestEvent


class AnyClient(Protocol):
    """A client whose functions are called by name."""

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Return the result of a function."""

    def collect(self, request_id: str, **options: Any) -> builtins.list[RequestEvent]:
        """Return all events of `stream`."""
        ...

    def list(self, **options: Any) -> Any:
        """Return all requests of `list`."""

    def leave(self, request_id: str, then: Callable[[], None]) -> None:
        """Leave the loop of `stream` at its first event."""

    def close(self) -> None:
        """Close the client."""


class BlockingClient:
    """Calls `Darkroom`."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = Darkroom(url, **options)

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        return getattr(self.client, name)(*args, **options)

    def collect(self, request_id: str, **options: Any) -> builtins.list[RequestEvent]:
        return [*self.client.stream(request_id, **options)]

    def list(self, **options: Any) -> Any:
        return [*self.client.list(**options)]

    def leave(self, request_id: str, then: Callable[[], None]) -> None:
        for _event in self.client.stream(request_id):
            break
        then()

    def close(self) -> None:
        self.client.close()


class LoopClient:
    """Calls `AsyncDarkroom` on an event loop of its own."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = AsyncDarkroom(url, **options)
        self.loop = asyncio.new_event_loop()

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        return self.loop.run_until_complete(getattr(self.client, name)(*args, **options))

    def collect(self, request_id: str, **options: Any) -> builtins.list[RequestEvent]:
        async def collect() -> builtins.list[RequestEvent]:
            return [event async for event in self.client.stream(request_id, **options)]

        return self.loop.run_until_complete(collect())

    def list(self, **options: Any) -> Any:
        async def collect() -> Any:
            return [summary async for summary in self.client.list(**options)]

        return self.loop.run_until_complete(collect())

    def leave(self, request_id: str, then: Callable[[], None]) -> None:
        async def leave() -> None:
            async for _event in self.client.stream(request_id):
                break
            await asyncio.to_thread(then)

        self.loop.run_until_complete(leave())

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())
        # As `asyncio.run` does.
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


KINDS: dict[str, Callable[..., AnyClient]] = {"blocking": BlockingClient, "async": LoopClient}
