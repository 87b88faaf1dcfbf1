"""The functions of a client, over any transport."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from .api_types import AcceptedRequest, CanceledRequest, RequestPage, RequestSummary, RequestView
from .errors import DarkroomError, is_response_lost
from .files import is_file
from .http import Connection, get_json, request_path, retrying, send_for_json
from .images import fetch_image
from .types import Image, RequestStatus

# Seconds of a long poll: many proxies cut a silent connection after 30 or 60.
LONG_POLL_S = 25
# Seconds between polls if the server sends no `Retry-After`.
POLL_EVERY_S = 1.0


def draw_idempotency_key() -> str:
    """Draw 128 random bits, for `submit`: store the key first, and a submission survives a restart of your program.

    Example:
        key = draw_idempotency_key()
        client.submit(prompt="a red apple", idempotency_key=key)

    """
    return secrets.token_hex(16)


async def submit(connection: Connection, request: Mapping[str, Any], key: str | None) -> AcceptedRequest:
    """Submit a request. Retry if the response is lost: the key makes all tries one request.

    A refusal (503, 429) is raised immediately.
    """
    body = await _body_of(connection, request)
    headers = {"idempotency-key": draw_idempotency_key() if key is None else key}
    accepted, _ = await retrying(
        connection,
        lambda _failures: send_for_json(connection, "/v1/predict", "POST", headers=headers, **body),
        is_response_lost,
    )
    return cast("AcceptedRequest", accepted)


async def _body_of(connection: Connection, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return httpx's arguments for JSON, or for a form if there are files, with the other fields as JSON."""
    fields = {name: value for name, value in request.items() if value is not None}
    files = {name: value for name, value in fields.items() if is_file(value)}
    if not files:
        return {"json": fields}
    contents = {
        name: (name, value if isinstance(value, bytes) else await connection.transport.read_file(value))
        for name, value in files.items()
    }
    data = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in fields.items()
        if name not in files
    }
    return {"files": contents, "data": data}


async def wait(connection: Connection, request_id: str) -> RequestView:
    """Wait for the end with long polls, which carry neither previews nor images."""
    path = request_path(request_id)

    def attempt(failures: int) -> Any:
        # A proxy may cut the long poll; after a failure, use a short poll.
        if failures > 0:
            return send_for_json(connection, path)
        read_timeout_s = connection.timeout_s + LONG_POLL_S
        return send_for_json(connection, f"{path}?wait={LONG_POLL_S}", read_timeout_s=read_timeout_s)

    while True:
        view, retry_after_s = await retrying(connection, attempt)
        if view["status"] not in ("queued", "running"):
            return cast("RequestView", view)
        await connection.transport.sleep(POLL_EVERY_S if retry_after_s is None else retry_after_s)


async def cancel(connection: Connection, request_id: str) -> CanceledRequest:
    """Cancel a request. Retry if the response is lost: then, a 409 may result from the first try."""
    tries = 0

    async def attempt(failures: int) -> Any:
        nonlocal tries
        tries = failures + 1
        return (await send_for_json(connection, request_path(request_id), "DELETE"))[0]

    try:
        return cast("CanceledRequest", await retrying(connection, attempt))
    except DarkroomError as error:
        if tries == 1 or error.status != 409:
            raise
        view = await get_json(connection, request_path(request_id))
        if view["status"] != "canceled":
            raise
        return {"request_id": request_id, "status": "canceled"}


async def images(connection: Connection, request_id: str) -> list[Image]:
    """Return the finished images with their bytes."""
    view = await get_json(connection, request_path(request_id))
    return [cast("Image", await fetch_image(connection, image)) for image in view.get("images", [])]


async def list_requests(
    connection: Connection,
    *,
    model: str | None,
    status: Sequence[RequestStatus] | None,
    created_after: datetime | None,
    created_before: datetime | None,
    page_size: int,
) -> AsyncGenerator[RequestSummary, None]:
    """Yield the caller's requests page by page."""
    filters = {
        "limit": page_size,
        "model": model,
        "status": None if status is None else ",".join(status),
        # A time without a zone is local.
        "created_after": None if created_after is None else created_after.astimezone().isoformat(),
        "created_before": None if created_before is None else created_before.astimezone().isoformat(),
    }
    query = {name: value for name, value in filters.items() if value is not None}
    while True:
        page = cast("RequestPage", await get_json(connection, f"/v1/predict?{urlencode(query)}"))
        for summary in page["data"]:
            yield summary
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]
