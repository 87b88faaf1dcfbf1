"""The blocking client."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import httpx

from . import calls
from .api_types import AcceptedRequest, CanceledRequest, ImageRequest, Model, RequestSummary, RequestView, TextRequest
from .http import connect, get_json, request_path, send_for_json
from .images import fetch_input
from .stream import stream
from .transport import BlockingTransport, iterate, run
from .types import Image, InputImage, RequestEvent, RequestStatus

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Darkroom:
    """A client of a Darkroom API. Its functions raise `DarkroomError`; all but `call` retry by themselves.

    Args:
        base_url: Such as `http://127.0.0.1:8080`, or with a path for an API behind a proxy.
        api_key: Sent as `Authorization: Bearer …`, for an API that requires keys.
        headers: Sent with every request, for example for a proxy.
        max_retries: Maximum retries in a row of a request or a stream's connection; the default takes a bit over a
            minute. Each event resets the count.
        timeout_s: Seconds without data until a request fails.
        silence_s: Seconds without data until a stream's connection counts as lost; by default three heartbeats.
        http_client: Your own httpx client, for example with certificates. You close it yourself.

    Example:
        with Darkroom("http://127.0.0.1:8080") as client:
            accepted = client.submit(prompt="a red apple", seed=7)
            print(client.wait(accepted["request_id"])["status"])

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
        http_client: httpx.Client | None = None,
    ) -> None:
        # Streams hold their connections for long, so their number has no limit.
        self._http = http_client or httpx.Client(limits=httpx.Limits(max_keepalive_connections=20))
        self._is_own_http = http_client is None
        transport = BlockingTransport(self._http)
        self._connection = connect(
            transport,
            base_url,
            api_key=api_key,
            headers=headers,
            max_retries=max_retries,
            timeout_s=timeout_s,
            silence_s=silence_s,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._is_own_http:
            self._http.close()

    def models(self) -> builtins.list[Model]:
        """Return the models and their limits.

        Example:
            ids = [model["id"] for model in client.models() if model["kind"] == "image"]

        """
        return cast("builtins.list[Model]", run(get_json(self._connection, "/v1/models"))["data"])

    @overload
    def submit(self, *, idempotency_key: str | None = None, **request: Unpack[ImageRequest]) -> AcceptedRequest: ...
    @overload
    def submit(self, *, idempotency_key: str | None = None, **request: Unpack[TextRequest]) -> AcceptedRequest: ...
    def submit(self, *, idempotency_key: str | None = None, **request: Any) -> AcceptedRequest:
        """Submit a request for images or texts; return when it is queued.

        Retried if the response is lost, and stored only once: submissions with the same key and body are one request.
        By default, each call draws a key. The fields are those of `ImageRequest` or `TextRequest`. An input image is
        its bytes, its path (`pathlib.Path`), or a string: a URL, or the `url` of an image on the server.

        Example:
            accepted = client.submit(prompt="a red apple", size="64x64", seed=7)
            accepted = client.submit(prompt="a strawberry", image=Path("apple.png"), strength=0.7)

        """
        return run(calls.submit(self._connection, request, idempotency_key))

    def get(self, request_id: str) -> RequestView:
        """Return a request's state. 404: it never existed; 410: it expired.

        Example:
            view = client.get(request_id)
            print(view["status"], view["queue_position"])

        """
        return cast("RequestView", run(get_json(self._connection, request_path(request_id))))

    def list(
        self,
        *,
        model: str | None = None,
        status: Sequence[RequestStatus] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        page_size: int = 100,
    ) -> Generator[RequestSummary, None, None]:
        """Yield the stored requests of this client's key, newest first. A page is fetched when the loop gets there.

        `status` has the states to list, such as `["queued", "running"]`. `created_after` is inclusive,
        `created_before` is not. A page has at most 100 requests.

        Example:
            for summary in client.list(status=["succeeded"]):
                print(summary["request_id"], summary.get("prompt"))

        """
        items = calls.list_requests(
            self._connection,
            model=model,
            status=status,
            created_after=created_after,
            created_before=created_before,
            page_size=page_size,
        )
        return iterate(items)

    def wait(self, request_id: str) -> RequestView:
        """Return the request when it has ended, with any final `status`. Its `texts` are complete.

        Example:
            view = client.wait(request_id)
            if view["kind"] == "text":
                print(view["texts"][0]["text"])

        """
        return run(calls.wait(self._connection, request_id))

    def stream(self, request_id: str, *, after: str | None = None) -> Generator[RequestEvent, None, None]:
        """Yield the request's events in order, each once, across broken connections and server restarts.

        Images are complete, and each chunk of a text comes once. The loop ends after one of `succeeded`, `failed`,
        `canceled` and `expired`; leaving it cancels nothing. `after` is the `id` of the last event that was seen.

        Example:
            for event in client.stream(request_id):
                if event["type"] == "delta":
                    print(event["text"], end="")
                if event["type"] == "image":
                    Path("apple.png").write_bytes(event["data"])

        """
        return iterate(stream(self._connection, request_id, after))

    def cancel(self, request_id: str) -> CanceledRequest:
        """Cancel a request.

        `canceled`: it was queued; `canceling`: it runs and stops at its next step. 409: it has ended.

        Example:
            status = client.cancel(request_id)["status"]

        """
        return run(calls.cancel(self._connection, request_id))

    def images(self, request_id: str) -> builtins.list[Image]:
        """Return the finished images with their bytes; after `wait`, all of them.

        Example:
            for image in client.images(request_id):
                Path(f"apple-{image['index']}.png").write_bytes(image["data"])

        """
        return run(calls.images(self._connection, request_id))

    def input(self, request_id: str, name: str) -> InputImage:
        """Return an input image, fitted to the output size. 404: there is none, or it was deleted.

        `name` is `image`, `mask`, or `image-0`, `image-1`, … of messages.

        Example:
            mask = client.input(request_id, "mask")["data"]

        """
        return run(fetch_input(self._connection, f"{request_path(request_id)}/inputs/{name}"))

    def call(self, method: Literal["GET", "POST", "DELETE"], path: str) -> Any:
        """Call a path of the API that has no function here; return its JSON. Tried once.

        Example:
            workers = client.call("GET", "/status")["workers"]

        """
        return run(send_for_json(self._connection, path, method))[0]
