"""Both clients against a running system with the models of the repository, whose address is in `DARKROOM_URL`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from any_client import AnyClient

from darkroom_client import AsyncDarkroom, Darkroom, DarkroomError, RequestEvent

URL = os.environ.get("DARKROOM_URL", "")
PROMPT = "a red apple on a white background"

pytestmark = pytest.mark.skipif(URL == "", reason="DARKROOM_URL is not set")


@pytest.fixture
def client(connect: Callable[..., AnyClient]) -> AnyClient:
    return connect(URL)


def test_waits_and_returns_several_images_with_their_seeds(client: AnyClient) -> None:
    request_id = client.call("submit", prompt=PROMPT, n=3, num_inference_steps=5, seed=40)["request_id"]
    ended = client.call("wait", request_id)
    assert (ended["status"], ended["progress"]) == ("succeeded", 1)
    images = client.call("images", request_id)
    assert [(image["seed"], image["bytes"] == len(image["data"])) for image in images] == [
        (40, True),
        (41, True),
        (42, True),
    ]
    assert client.call("submit", **ended["parameters"])["status"] == "queued"


def test_streams_progress_previews_and_the_image_and_resumes_after_an_event(client: AnyClient) -> None:
    accepted = client.call("submit", prompt=PROMPT, num_inference_steps=10, preview={"every": 2}, seed=7)
    found: list[Any] = client.collect(accepted["request_id"])
    assert any(event.get("preview", "").startswith("data:image/") for event in found)
    [image] = [event for event in found if event["type"] == "image"]
    assert image["data"] == client.call("images", accepted["request_id"])[0]["data"]
    later = client.collect(accepted["request_id"], after=found[1]["id"])
    assert [event["id"] for event in later] == [event["id"] for event in found[2:]]


def test_takes_an_input_image_from_a_file_and_returns_it(client: AnyClient, tmp_path: Path) -> None:
    first = client.call("submit", prompt=PROMPT, num_inference_steps=5)["request_id"]
    client.call("wait", first)
    path = tmp_path / "apple.png"
    path.write_bytes(client.call("images", first)[0]["data"])
    second = client.call("submit", prompt="a strawberry", image=path, strength=0.5, num_inference_steps=4)
    assert client.call("wait", second["request_id"])["status"] == "succeeded"
    stored = client.call("input", second["request_id"], "image")
    assert (stored["content_type"], stored["data"][:4]) == ("image/png", b"\x89PNG")


def test_stores_a_request_once_however_often_its_key_is_sent(client: AnyClient) -> None:
    key = os.urandom(16).hex()
    ids = [client.call("submit", prompt=PROMPT, seed=1, idempotency_key=key)["request_id"] for _ in range(2)]
    assert ids[0] == ids[1]
    with pytest.raises(DarkroomError) as caught:
        client.call("submit", prompt=PROMPT, seed=2, idempotency_key=key)
    assert (caught.value.status, caught.value.code) == (409, "idempotency_conflict")


def test_cancels_a_running_request_which_ends_its_stream() -> None:
    with Darkroom(URL) as client:
        request_id = client.submit(prompt=PROMPT, num_inference_steps=200)["request_id"]
        status = ""
        last: RequestEvent | None = None
        for last in client.stream(request_id):
            if last["type"] == "progress" and "step" in last and last["step"] >= 3 and status == "":
                status = client.cancel(request_id)["status"]
        assert last is not None
        assert (status, last["type"], client.get(request_id)["status"]) == ("canceling", "canceled", "canceled")
        with pytest.raises(DarkroomError) as caught:
            client.cancel(request_id)
        assert (caught.value.status, caught.value.code) == (409, "request_ended")
        assert client.images(request_id) == []


def test_cancels_a_running_request_which_ends_its_stream_async() -> None:
    async def cancel() -> tuple[str, str]:
        async with AsyncDarkroom(URL) as client:
            request_id = (await client.submit(prompt=PROMPT, num_inference_steps=200))["request_id"]
            status = ""
            types = []
            async for event in client.stream(request_id):
                types.append(event["type"])
                if event["type"] == "progress" and "step" in event and event["step"] >= 3 and status == "":
                    status = (await client.cancel(request_id))["status"]
            return status, types[-1]

    assert asyncio.run(cancel()) == ("canceling", "canceled")


def test_many_streams_share_one_asynchronous_client() -> None:
    async def follow() -> list[list[str]]:
        async with AsyncDarkroom(URL) as client:
            prompts = [f"{color} fruit" for color in ("a red", "a green", "a blue", "a yellow")]

            async def texts(prompt: str) -> list[str]:
                accepted = await client.submit(model="emoji-writer", messages=[{"role": "user", "content": prompt}])
                events = [event async for event in client.stream(accepted["request_id"])]
                return [event["text"] for event in events if event["type"] == "text"]

            return await asyncio.gather(*map(texts, prompts))

    assert [len(texts) for texts in asyncio.run(follow())] == [1, 1, 1, 1]


def test_reports_errors_with_status_code_and_param(client: AnyClient) -> None:
    with pytest.raises(DarkroomError) as caught:
        client.call("submit", prompt=PROMPT, seed=-1)
    assert (caught.value.status, caught.value.param) == (400, "seed")
    for call in (
        lambda: client.call("get", "emoji-sd-01kaj4v6x2e8w0w1m6r3c9f5tz"),
        lambda: client.collect("nothing"),
    ):
        with pytest.raises(DarkroomError) as caught:
            call()
        assert (caught.value.status, caught.value.code) == (404, "request_not_found")


def test_lists_requests_newest_first_by_model_state_and_time(client: AnyClient) -> None:
    before = datetime.now(timezone.utc)
    ids = [client.call("submit", prompt=PROMPT, num_inference_steps=2)["request_id"] for _ in range(3)]
    for request_id in ids:
        client.call("wait", request_id)
    found = client.list(model="emoji-sd", status=["succeeded"], created_after=before, page_size=2)
    assert [summary["request_id"] for summary in found] == ids[::-1]
    assert [(summary["prompt"], len(summary["images"])) for summary in found] == [(PROMPT, 1)] * 3
    assert client.list(model="emoji-sd", status=["failed"], created_after=before) == []
    assert ids[0] not in [summary["request_id"] for summary in client.list(created_before=before)]


def test_lists_models_of_both_kinds_and_calls_other_paths(client: AnyClient) -> None:
    kinds = {model["id"]: model["kind"] for model in client.call("models")}
    assert (kinds["emoji-sd"], kinds["emoji-writer"]) == ("image", "text")
    assert client.call("call", "GET", "/status")["queues"] != []


@pytest.mark.parametrize("model", ["emoji-writer", "emoji-writer-diffusion"])
def test_text_deltas_add_up_to_the_text_and_the_same_parameters_give_it_again(client: AnyClient, model: str) -> None:
    messages = [{"role": "user", "content": "something sweet for a birthday party"}]
    request_id = client.call("submit", model=model, messages=messages)["request_id"]
    found: list[Any] = client.collect(request_id)
    grown = "".join(event["text"] for event in found if event["type"] == "delta")
    blocks = [event["text"] for event in found if event["type"] == "snapshot"]
    assert grown.endswith(" background")
    assert [event["text"] for event in found if event["type"] == "text"] == [grown]
    assert any("░" in block for block in blocks) == (model == "emoji-writer-diffusion")
    ended = client.call("wait", request_id)
    assert (ended["status"], ended["texts"], "images" in ended) == ("succeeded", [{"index": 0, "text": grown}], False)
    again = client.call("submit", **ended["parameters"])["request_id"]
    assert client.call("wait", again)["texts"] == ended["texts"]
