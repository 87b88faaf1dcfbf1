"""Sends single requests, reads responses, and retries."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from .errors import DarkroomError, connection_error, error_of_response, is_temporary, retry_after_of
from .transport import Transport

T = TypeVar("T")

FIRST_BACK_OFF_S = 0.25
MAX_BACK_OFF_S = 15.0
# Limits waits that a server requests, to what every platform can sleep.
MAX_SLEEP_S = 2.0**31 / 1000


@dataclass(frozen=True)
class Connection:
    """The options of a client, with its transport."""

    transport: Transport
    base_url: str
    headers: Mapping[str, str]
    max_retries: int
    timeout_s: float
    silence_s: float


def connect(
    transport: Transport,
    base_url: str,
    *,
    api_key: str | None,
    headers: Mapping[str, str] | None,
    max_retries: int,
    timeout_s: float,
    silence_s: float,
) -> Connection:
    """Check the address, and add the key to the headers."""
    if re.match(r"https?://[^/]", base_url) is None:
        raise ValueError(f"base_url is {base_url!r}, expected a URL such as http://127.0.0.1:8080")
    keyed = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    every = {**(headers or {}), **keyed}
    return Connection(transport, base_url.rstrip("/"), every, max_retries, timeout_s, silence_s)


def request_path(request_id: str) -> str:
    """Return a request's path below the client's `base_url`."""
    return f"/v1/predict/{quote(request_id, safe='')}"


def url_below(base_url: str, path: str) -> str:
    """Join URL and path. Behind a proxy, `base_url` may have a path; paths from the server may begin with it."""
    origin, prefix = re.fullmatch(r"(\w+://[^/]+)(.*)", base_url, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{origin}{path}" if prefix != "" and path.startswith(f"{prefix}/") else f"{base_url}{path}"


async def send(
    connection: Connection,
    path: str,
    method: str = "GET",
    *,
    headers: Mapping[str, str] | None = None,
    read_timeout_s: float | None = None,
    **body: Any,
) -> httpx.Response:
    """Send one request. Return when a 2xx response begins; raise `DarkroomError` otherwise.

    `read_timeout_s` is the longest silence of the server, `timeout_s` by default. The caller closes the response, which
    `read_bytes` and `read_parts` do.
    """
    # Without the query, which may contain a link's signature: errors are logged.
    what = f"{method} {path.partition('?')[0]}"
    read_s = connection.timeout_s if read_timeout_s is None else read_timeout_s
    request = connection.transport.build(
        method,
        url_below(connection.base_url, path),
        headers={**connection.headers, **(headers or {})},
        timeout=httpx.Timeout(connection.timeout_s, read=read_s),
        **body,
    )
    try:
        response = await connection.transport.send(request)
    except httpx.LocalProtocolError:
        # A header of the caller is invalid.
        raise
    except httpx.TimeoutException as error:
        raise DarkroomError(f"{what} had no response within {read_s:g} s", "timeout") from error
    except httpx.RequestError as error:
        raise connection_error(what) from error
    if response.is_success:
        return response
    try:
        content = await read_bytes(connection, response)
    except DarkroomError:
        content = b""
    raise error_of_response(response, content, what)


async def read_parts(connection: Connection, response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield a body's parts as they arrive, and close it. Raise `DarkroomError` if it breaks off or stalls."""
    try:
        async with aclosing(connection.transport.parts(response)) as parts:
            async for part in parts:
                yield part
    except httpx.RequestError as error:
        raise connection_error("a response broke off") from error
    finally:
        await connection.transport.close(response)


async def read_bytes(connection: Connection, response: httpx.Response) -> bytes:
    """Read a complete body. Raise as `read_parts`."""
    return b"".join([part async for part in read_parts(connection, response)])


async def send_for_json(
    connection: Connection, path: str, method: str = "GET", **options: Any
) -> tuple[Any, float | None]:
    """Send one request. Return its JSON, and the seconds of `Retry-After`."""
    response = await send(connection, path, method, **options)
    content = await read_bytes(connection, response)
    try:
        return json.loads(content), retry_after_of(response)
    except ValueError as error:
        raise DarkroomError("the answer is not JSON", "invalid_answer", response.status_code) from error


async def retrying(
    connection: Connection,
    attempt: Callable[[int], Awaitable[T]],
    is_retryable: Callable[[DarkroomError], bool] = is_temporary,
) -> T:
    """Retry an idempotent operation after temporary errors. `attempt` gets the number of failed tries."""
    failures = 0
    while True:
        try:
            return await attempt(failures)
        except DarkroomError as error:
            if not is_retryable(error) or failures >= connection.max_retries:
                raise
            retry_after_s = error.retry_after_s
        await back_off(connection, failures, retry_after_s=retry_after_s)
        failures += 1


async def get_json(connection: Connection, path: str) -> Any:
    """Return the JSON of a path, over temporary errors."""
    return (await retrying(connection, lambda _failures: send_for_json(connection, path)))[0]


async def back_off(
    connection: Connection, failures: int, *, retry_s: float | None = None, retry_after_s: float | None = None
) -> None:
    """Wait before the next try, exponentially longer up to 15 s.

    `failures` counts the failed tries in a row before the latest. `retry_s` is the server's `retry:`, which replaces
    the first wait, `retry_after_s` its `Retry-After`, the minimum. Up to 50 % jitter prevents that the clients of a
    process that died reconnect at the same moment.
    """
    first_s = FIRST_BACK_OFF_S if retry_s is None else retry_s
    # Enough for the maximum; more would overflow.
    doublings = min(failures, 10)
    grown_s = first_s if failures == 0 else max(first_s, FIRST_BACK_OFF_S) * 2**doublings
    base_s = max(first_s, min(MAX_BACK_OFF_S, grown_s), retry_after_s or 0.0)
    await connection.transport.sleep(min(MAX_SLEEP_S, base_s * (1 + random.random() / 2)))
