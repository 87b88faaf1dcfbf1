"""A scripted server, and both clients of it, which skip all waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from any_client import KINDS, AnyClient
from scripted_server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()
    yield scripted
    scripted.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the waits of the client, without jitter, and return their seconds."""
    seconds: list[float] = []

    async def record(wait_s: float) -> None:
        seconds.append(wait_s)

    monkeypatch.setattr("darkroom_client.transport.sleep_blocking", seconds.append)
    monkeypatch.setattr("darkroom_client.transport.sleep_async", record)
    monkeypatch.setattr("darkroom_client.http.random.random", lambda: 0.0)
    return seconds


@pytest.fixture(params=list(KINDS))
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., AnyClient]]:
    """Open clients of one kind by their URL and options."""
    clients: list[AnyClient] = []

    def connect(url: str, **options: Any) -> AnyClient:
        clients.append(KINDS[request.param](url, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., AnyClient], server: ScriptedServer, waits: list[float]) -> AnyClient:
    return connect(server.url)
