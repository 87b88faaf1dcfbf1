"""The functions of both clients but `stream`, on a server that fails in many ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from any_client import AnyClient
from scripted_server import ScriptedServer, error_answer, hang, image_answer, json_answer, page, raw, reset

from darkroom_client import AsyncDarkroom, Darkroom, DarkroomError

ACCEPTED = {"request_id": "tiny-1", "status": "queued", "queue_position": 3, "is_possible": True, "urls": {}}
IMAGE = b"\x09\x08\x07"
LONG_POLL = "GET /v1/predict/tiny-1?wait=25"
SHORT_POLL = "GET /v1/predict/tiny-1"

Connect = Callable[..., AnyClient]


def image_info(index: int) -> dict[str, Any]:
    url = f"/v1/predict/tiny-1/images/{index}"
    return {"index": index, "url": url, "seed": index, "width": 8, "height": 8, "content_type": "image/png", "bytes": 3}


def view(status: str, *images: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": "tiny-1", "status": status, "images": list(images)}


def running(retry_after_s: int) -> Any:
    return json_answer(202, view("running"), {"retry-after": str(retry_after_s)})


SUCCEEDED = json_answer(200, view("succeeded", image_info(0), image_info(1)))


def paths_of(server: ScriptedServer) -> list[str]:
    return [f"{request.method} {request.path}" for request in server.requests]


def test_submit_sends_the_request_and_returns_its_id(client: AnyClient, server: ScriptedServer) -> None:
    server.script(json_answer(202, ACCEPTED))
    assert client.call("submit", prompt="ein grüner Apfel", seed=7, preview={"every": 2}, size=None) == ACCEPTED
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/predict")
    assert json.loads(request.body) == {"prompt": "ein grüner Apfel", "seed": 7, "preview": {"every": 2}}


def test_submit_sends_files_as_a_form_again_in_each_try(
    client: AnyClient, server: ScriptedServer, tmp_path: Path
) -> None:
    path = tmp_path / "apple.png"
    path.write_bytes(IMAGE)
    server.script(reset, json_answer(202, ACCEPTED))
    client.call("submit", prompt="7", n=2, preview={"every": 2}, image=path, mask=b"mask")
    for request in server.requests:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = [part.strip(b"\r\n-").partition(b"\r\n\r\n") for part in request.body.split(boundary)[1:-1]]
        names = [head.partition(b'name="')[2].partition(b'"')[0].decode() for head, _, _ in parts]
        values = dict(zip(names, [content for _, _, content in parts], strict=True))
        assert values == {"prompt": b"7", "n": b"2", "preview": b'{"every": 2}', "image": IMAGE, "mask": b"mask"}
    assert len(server.requests) == 2


def test_submit_retries_with_the_same_idempotency_key_if_its_response_is_lost(
    connect: Connect, server: ScriptedServer, waits: list[float]
) -> None:
    # Without a timeout, the second try never ends.
    client = connect(server.url, timeout_s=0.5)
    accepted = json_answer(202, ACCEPTED)
    server.script(reset, hang, error_answer(502, "bad_gateway"), accepted, accepted, accepted)
    assert client.call("submit", prompt="x") == ACCEPTED
    client.call("submit", prompt="x")
    client.call("submit", prompt="x", idempotency_key="fox-1")
    *tries, other, own = [request.headers["idempotency-key"] for request in server.requests]
    assert len(tries) == 4
    assert len(set(tries)) == 1
    assert len(tries[0]) == 32
    assert other not in tries
    assert own == "fox-1"


def test_submit_does_not_retry_a_refusal(client: AnyClient, server: ScriptedServer, waits: list[float]) -> None:
    server.script(error_answer(503, "overloaded", {"retry-after": "5"}))
    with pytest.raises(DarkroomError, match="it is overloaded") as caught:
        client.call("submit", prompt="x")
    assert (caught.value.status, caught.value.code, caught.value.retry_after_s) == (503, "overloaded", 5.0)
    assert (len(server.requests), waits) == (1, [])


def test_errors_name_the_invalid_field(client: AnyClient, server: ScriptedServer) -> None:
    server.script(error_answer(400, "invalid_value", param="seed"))
    with pytest.raises(DarkroomError) as caught:
        client.call("submit", prompt="x", seed=-1)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "invalid_value", "seed")


def test_get_retries_after_resets_and_503_no_sooner_than_retry_after(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(reset, error_answer(503, "unavailable", {"retry-after": "5"}), error_answer(502, "x"), running(1))
    assert client.call("get", "tiny-1") == view("running")
    assert waits == [0.25, 5.0, 1.0]


def test_get_retries_a_response_that_stalls_or_breaks_off(
    connect: Connect, server: ScriptedServer, waits: list[float]
) -> None:
    client = connect(server.url, timeout_s=0.5)
    body = json.dumps(view("running")).encode()
    stalled = raw(200, body[:20], {"content-length": str(len(body)), "connection": "close"})
    server.script(raw(200, body, sent=20), stalled, hang, running(1))
    assert client.call("get", "tiny-1") == view("running")
    assert len(server.requests) == 4


def test_get_distinguishes_404_410_and_responses_that_are_not_from_the_api(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(error_answer(404, "request_not_found"), error_answer(410, "request_gone"), page(418), page(200))
    found = []
    for _ in range(4):
        with pytest.raises(DarkroomError) as caught:
            client.call("get", "tiny-1")
        found.append((caught.value.status, caught.value.code))
    assert found == [(404, "request_not_found"), (410, "request_gone"), (418, "http_418"), (200, "invalid_answer")]
    assert waits == []


def test_raises_the_last_error_after_the_maximum_of_retries(
    connect: Connect, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(reset, reset, error_answer(503, "unavailable"))
    with pytest.raises(DarkroomError) as caught:
        connect(server.url, max_retries=2).call("get", "tiny-1")
    assert caught.value.status == 503
    server.script(reset)
    with pytest.raises(DarkroomError) as lost:
        connect(server.url, max_retries=0).call("get", "tiny-1")
    assert (lost.value.status, lost.value.code) == (None, "connection_failed")


def test_sends_its_key_and_headers_below_a_base_url_with_a_path(connect: Connect, server: ScriptedServer) -> None:
    client = connect(f"{server.url}/darkroom/", api_key="k-1", headers={"x-a": "b"})
    url = "/darkroom/v1/predict/a/images/0"
    server.script(json_answer(200, view("succeeded", {**image_info(0), "url": url})), image_answer(IMAGE))
    assert [image["data"] for image in client.call("images", "a/b")] == [IMAGE]
    assert paths_of(server) == ["GET /darkroom/v1/predict/a%2Fb", f"GET {url}"]
    for request in server.requests:
        assert (request.headers["authorization"], request.headers["x-a"]) == ("Bearer k-1", "b")


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://host", "http://"])
def test_refuses_a_base_url_that_is_no_url_of_http(connect: Connect, url: str) -> None:
    with pytest.raises(ValueError, match="base_url is "):
        connect(url)


def test_models_returns_the_list(client: AnyClient, server: ScriptedServer) -> None:
    server.script(error_answer(503, "unavailable"), json_answer(200, {"object": "list", "data": [{"id": "tiny"}]}))
    assert client.call("models") == [{"id": "tiny"}]


def list_page(next_cursor: str | None, *ids: str) -> Any:
    return json_answer(200, {"data": [{"request_id": request_id} for request_id in ids], "next_cursor": next_cursor})


def test_list_yields_the_requests_of_all_pages_over_an_empty_page_and_a_reset(
    client: AnyClient, server: ScriptedServer
) -> None:
    server.script(list_page("2.b", "tiny-3", "tiny-2"), reset, list_page("1.a"), list_page(None, "tiny-1"))
    assert [summary["request_id"] for summary in client.list()] == ["tiny-3", "tiny-2", "tiny-1"]
    queries = ["limit=100", "limit=100&cursor=2.b", "limit=100&cursor=2.b", "limit=100&cursor=1.a"]
    assert paths_of(server) == [f"GET /v1/predict?{query}" for query in queries]


def test_list_sends_its_filters(client: AnyClient, server: ScriptedServer) -> None:
    server.script(list_page(None))
    times = {"created_after": datetime(2026, 1, 1, tzinfo=timezone.utc), "created_before": datetime(2026, 1, 2)}
    assert client.list(model="tiny", status=["queued", "running"], page_size=1, **times) == []
    query = dict(parse_qsl(server.requests[0].path.partition("?")[2]))
    assert datetime.fromisoformat(query.pop("created_before")).timestamp() == times["created_before"].timestamp()
    assert datetime.fromisoformat(query.pop("created_after")) == times["created_after"]
    assert query == {"limit": "1", "model": "tiny", "status": "queued,running"}


def test_list_fetches_a_page_when_the_loop_gets_there(server: ScriptedServer) -> None:
    server.script(list_page("2.b", "tiny-3"))
    with Darkroom(server.url) as client:
        assert next(client.list())["request_id"] == "tiny-3"
    assert len(server.requests) == 1


def test_wait_repeats_long_polls_until_the_request_has_ended(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(running(7), running(3), json_answer(200, view("failed")))
    assert client.call("wait", "tiny-1")["status"] == "failed"
    assert paths_of(server) == [LONG_POLL] * 3
    assert waits == [7.0, 3.0]


def test_wait_falls_back_to_short_polls_behind_a_proxy_with_a_short_timeout(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(error_answer(504, "x"), running(2), reset, SUCCEEDED)
    assert client.call("wait", "tiny-1")["status"] == "succeeded"
    assert paths_of(server) == [LONG_POLL, SHORT_POLL, LONG_POLL, SHORT_POLL]
    assert waits == [0.25, 2.0, 0.25]


def test_wait_raises_404_and_410(client: AnyClient, server: ScriptedServer) -> None:
    server.script(running(1), error_answer(410, "request_gone"), error_answer(404, "request_not_found"))
    for status in (410, 404):
        with pytest.raises(DarkroomError) as caught:
            client.call("wait", "tiny-1")
        assert caught.value.status == status


def test_cancel_returns_the_new_status(client: AnyClient, server: ScriptedServer) -> None:
    answer = {"request_id": "tiny-1", "status": "canceling"}
    server.script(json_answer(202, answer), error_answer(409, "request_ended"))
    assert client.call("cancel", "tiny-1") == answer
    with pytest.raises(DarkroomError, match="request_ended"):
        client.call("cancel", "tiny-1")
    assert paths_of(server) == ["DELETE /v1/predict/tiny-1"] * 2


def test_cancel_recognizes_its_own_cancellation_if_the_response_was_lost(
    client: AnyClient, server: ScriptedServer
) -> None:
    server.script(reset, error_answer(409, "request_ended"), json_answer(200, view("canceled")))
    assert client.call("cancel", "tiny-1") == {"request_id": "tiny-1", "status": "canceled"}
    server.script(reset, error_answer(409, "request_ended"), SUCCEEDED)
    with pytest.raises(DarkroomError, match="request_ended"):
        client.call("cancel", "tiny-1")


def test_call_returns_the_json_of_any_path_and_tries_once(client: AnyClient, server: ScriptedServer) -> None:
    server.script(json_answer(200, {"time": "now"}), error_answer(503, "unavailable"))
    assert client.call("call", "GET", "/status") == {"time": "now"}
    with pytest.raises(DarkroomError, match="unavailable"):
        client.call("call", "POST", "/admin/x")
    assert paths_of(server) == ["GET /status", "POST /admin/x"]


def test_images_returns_all_bytes(client: AnyClient, server: ScriptedServer) -> None:
    server.script(
        SUCCEEDED, image_answer(IMAGE), raw(200, IMAGE, {"content-type": "image/png"}, sent=1), image_answer(IMAGE)
    )
    assert client.call("images", "tiny-1") == [{**image_info(index), "data": IMAGE} for index in (0, 1)]


def test_input_returns_the_input_image_with_its_type(client: AnyClient, server: ScriptedServer) -> None:
    server.script(reset, image_answer(IMAGE), error_answer(404, "input_not_found"))
    assert client.call("input", "tiny-1", "mask") == {"data": IMAGE, "content_type": "image/png"}
    with pytest.raises(DarkroomError, match="input_not_found"):
        client.call("input", "tiny-1", "image")
    assert paths_of(server)[0] == "GET /v1/predict/tiny-1/inputs/mask"


def test_a_canceled_task_ends_its_call_and_closes_the_connection(server: ScriptedServer) -> None:
    async def cancel() -> None:
        closed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def report(connection: Any, _request: Any) -> None:
            loop.call_soon_threadsafe(task.cancel)
            connection.recv(1)
            loop.call_soon_threadsafe(closed.set)

        server.script(report)
        async with AsyncDarkroom(server.url) as client:
            task = asyncio.ensure_future(client.get("tiny-1"))
            with pytest.raises(asyncio.CancelledError):
                await task
            await closed.wait()

    asyncio.run(cancel())


def test_the_blocking_client_works_inside_a_running_event_loop(server: ScriptedServer) -> None:
    async def get() -> Any:
        with Darkroom(server.url) as client:
            return client.get("tiny-1")

    server.script(SUCCEEDED)
    assert asyncio.run(get())["status"] == "succeeded"
