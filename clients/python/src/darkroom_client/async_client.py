"""The asynchronous client."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import httpx

from . import calls
from .api_types import AcceptedRequest, CanceledRequest, ImageRequest, Model, RequestSummary, RequestView, TextRequest
from .http import connect, get_json, request_path, send_for_json
from .images import fetch_input
from .stream import stream
from .transport import AsyncTransport
from .types import Image, InputImage, RequestEvent, RequestStatus

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncDarkroom:
    """A client for asyncio. Arguments and functions are those of `Darkroom`.

    Cancelling the task of a call ends the call, and does not cancel the request: use `cancel`.

    Example:
        async with AsyncDarkroom("http://127.0.0.1:8080") as client:
            accepted = await client.submit(prompt="a red apple", seed=7)
            async for event in client.stream(accepted["request_id"]):
                print(event["type"])

    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        max_retries: int = 10,
        timeout_s: float = 30.0,
        silence_s: float = 45.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        # Streams hold their connections for long, so their number has no limit.
        self._http = http_client or httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=20))
        self._is_own_http = http_client is None
        transport = AsyncTransport(self._http)
        self._connection = connect(
            transport,
            base_url,
            api_key=api_key,
            headers=headers,
            max_retries=max_retries,
            timeout_s=timeout_s,
            silence_s=silence_s,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._is_own_http:
            await self._http.aclose()

    async def models(self) -> builtins.list[Model]:
        """Return the models and their limits."""
        return cast("builtins.list[Model]", (await get_json(self._connection, "/v1/models"))["data"])

    @overload
    async def submit(
        self, *, idempotency_key: str | None = None, **request: Unpack[ImageRequest]
    ) -> AcceptedRequest: ...
    @overload
    async def submit(
        self, *, idempotency_key: str | None = None, **request: Unpack[TextRequest]
    ) -> AcceptedRequest: ...
    async def submit(self, *, idempotency_key: str | None = None, **request: Any) -> AcceptedRequest:
        """Submit a request for images or texts; return when it is queued. See `Darkroom.submit`."""
        return await calls.submit(self._connection, request, idempotency_key)

    async def get(self, request_id: str) -> RequestView:
        """Return a request's state. 404: it never existed; 410: it expired."""
        return cast("RequestView", await get_json(self._connection, request_path(request_id)))

    def list(
        self,
        *,
        model: str | None = None,
        status: Sequence[RequestStatus] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        page_size: int = 100,
    ) -> AsyncGenerator[RequestSummary, None]:
        """Yield the stored requests of this client's key, newest first. See `Darkroom.list`."""
        return calls.list_requests(
            self._connection,
            model=model,
            status=status,
            created_after=created_after,
            created_before=created_before,
            page_size=page_size,
        )

    async def wait(self, request_id: str) -> RequestView:
        """Return the request when it has ended, with any final `status`. Its `texts` are complete.

        Example:
            async with asyncio.timeout(60):
                view = await client.wait(request_id)

        """
        return await calls.wait(self._connection, request_id)

    def stream(self, request_id: str, *, after: str | None = None) -> AsyncGenerator[RequestEvent, None]:
        """Yield the request's events in order, each once. See `Darkroom.stream`.

        asyncio closes the connection soon after the loop is left; `contextlib.aclosing` closes it at once.

        Example:
            async with aclosing(client.stream(request_id)) as events:
                async for event in events:
                    if event["type"] == "started":
                        break

        """
        return stream(self._connection, request_id, after)

    async def cancel(self, request_id: str) -> CanceledRequest:
        """Cancel a request. See `Darkroom.cancel`."""
        return await calls.cancel(self._connection, request_id)

    async def images(self, request_id: str) -> builtins.list[Image]:
        """Return the finished images with their bytes; after `wait`, all of them."""
        return await calls.images(self._connection, request_id)

    async def input(self, request_id: str, name: str) -> InputImage:
        """Return an input image, fitted to the output size. See `Darkroom.input`."""
        return await fetch_input(self._connection, f"{request_path(request_id)}/inputs/{name}")

    async def call(self, method: Literal["GET", "POST", "DELETE"], path: str) -> Any:
        """Call a path of the API that has no function here; return its JSON. Tried once."""
        return (await send_for_json(self._connection, path, method))[0]
