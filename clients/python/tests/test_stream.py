"""`stream` of both clients: events and images over connections that break."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable
from typing import Any, get_args

import pytest
from any_client import AnyClient
from scripted_server import (
    DONE,
    Answer,
    Recorded,
    ScriptedServer,
    error_answer,
    events,
    frame,
    hang,
    honest,
    image_answer,
    page,
    raw,
    reset,
)

from darkroom_client import DarkroomError, ImageEvent, RequestEvent, TextEvent
from darkroom_client.api_types import ImageChunkEvent, SentEvent, TextEndEvent

Connect = Callable[..., AnyClient]

IMAGE = bytes(index * 37 % 256 for index in range(40))
SECOND = b"\x01\x02\x03\xfa"
PREVIEW = "data:image/webp;base64,AAr/"


def image_info(index: int, image: bytes) -> dict[str, Any]:
    url = f"/v1/predict/tiny-1/images/{index}"
    size = len(image)
    return {"index": index, "url": url, "seed": 7, "width": 8, "height": 8, "content_type": "image/png", "bytes": size}


def chunks(first: int, index: int, image: bytes) -> list[str]:
    """Return an image's messages, in chunks of 12 bytes."""
    parts = [image[at : at + 12] for at in range(0, len(image), 12)]
    return [
        frame(
            first + at,
            "image",
            **image_info(index, image),
            chunk_index=at,
            total_chunks=len(parts),
            is_final=at == len(parts) - 1,
            b64=base64.b64encode(part).decode(),
        )
        for at, part in enumerate(parts)
    ]


# One image in four chunks, one in one chunk; the umlaut of the note has two bytes.
FRAMES = [
    frame(1, "queued", queue_position=0, attempt=1, note="grün"),
    frame(2, "started", attempt=1),
    frame(3, "progress", index=0, step=1, total_steps=4, progress=0.25, preview=PREVIEW),
    *chunks(4, 0, IMAGE),
    *chunks(8, 1, SECOND),
    frame(9, "succeeded", images=[image_info(0, IMAGE), image_info(1, SECOND)]),
    DONE,
]
WHOLE = "".join(FRAMES)
NAMES = ["queued 1-0", "started 2-0", "progress 3-0", "image 7-0", "image 8-0", "succeeded 9-0"]
HONEST = honest(FRAMES)


def names_of(found: list[RequestEvent]) -> list[str]:
    return [f"{event['type']} {event['id']}" for event in found]


def images_of(found: list[RequestEvent]) -> list[bytes]:
    return [event["data"] for event in found if event["type"] == "image"]


def assert_everything(found: list[RequestEvent]) -> None:
    assert names_of(found) == NAMES
    assert images_of(found) == [IMAGE, SECOND]


def test_yields_events_and_complete_images_and_ends_after_done(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(events(WHOLE, "hang"))
    found: list[Any] = client.collect("tiny-1")
    assert_everything(found)
    assert (found[2]["step"], found[2]["total_steps"], found[2]["preview"]) == (1, 4, PREVIEW)
    common = {"type": "image", "id": "8-0", "request_id": "tiny-1", "timestamp": "2026-01-01T00:00:00.000Z"}
    assert found[4] == {**common, **image_info(1, SECOND), "data": SECOND}
    assert (len(server.requests), waits) == (1, [])


def test_drops_and_repeats_nothing_if_the_connection_is_cut_at_any_byte(
    client: AnyClient, server: ScriptedServer
) -> None:
    content = WHOLE.encode()
    # All positions around line ends, and some positions within lines.
    cuts = [cut for cut in range(len(content) + 1) if cut % 13 == 0 or b"\n" in content[max(0, cut - 2) : cut + 2]]
    for number, cut in enumerate(cuts):
        server.script(events(content[:cut], ("end", "cut", "reset")[number % 3]), HONEST)
        assert_everything(client.collect("tiny-1"))


def test_resumes_from_the_last_event_after_a_cut_behind_any_event(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    # Each connection repeats an event, and brings a new one.
    server.script(*[events("".join(FRAMES[max(0, at - 1) : at + 1]), "cut") for at in range(len(FRAMES))])
    assert_everything(client.collect("tiny-1"))
    last = [request.headers.get("last-event-id") for request in server.requests]
    assert last == [None, *(f"{sequence}-0" for sequence in range(1, 9))]
    assert set(waits) == {0.25}


def test_starts_after_the_given_event(client: AnyClient, server: ScriptedServer) -> None:
    server.script(HONEST)
    assert names_of(client.collect("tiny-1", after="7-0")) == NAMES[4:]


def test_drops_repeated_events(client: AnyClient, server: ScriptedServer) -> None:
    server.script(events("".join(FRAMES[:5]) + WHOLE))
    assert_everything(client.collect("tiny-1"))
    server.script(events("".join(FRAMES[:5])), events(WHOLE))
    assert_everything(client.collect("tiny-1"))


def test_ignores_comments_and_unknown_events(client: AnyClient, server: ScriptedServer) -> None:
    server.script(events(f": hello\n\n{FRAMES[0]}{frame(2, 'paused')}"), HONEST)
    assert names_of(client.collect("tiny-1")) == [NAMES[0], *NAMES[2:]]
    assert server.requests[1].headers["last-event-id"] == "2-0"


def test_reconnects_after_an_event_that_is_not_json(client: AnyClient, server: ScriptedServer) -> None:
    server.script(
        events("id: 1-0\nevent: queued\ndata: [1]\n\n"), events("id: 1-0\nevent: queued\ndata: {\n\n"), HONEST
    )
    assert_everything(client.collect("tiny-1"))


def test_backs_off_exponentially_and_starts_again_after_an_event(
    client: AnyClient, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(reset, reset, reset, events(FRAMES[0]), reset, HONEST)
    assert_everything(client.collect("tiny-1"))
    assert waits == [0.25, 0.5, 1.0, 0.25, 0.5]


def test_waits_at_most_15_s_and_up_to_half_more(
    client: AnyClient, server: ScriptedServer, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darkroom_client.http.random.random", lambda: 1.0)
    server.script(*[reset] * 9, HONEST)
    assert_everything(client.collect("tiny-1"))
    assert waits == [0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 22.5, 22.5, 22.5]


def test_respects_retry_and_retry_after(client: AnyClient, server: ScriptedServer, waits: list[float]) -> None:
    unavailable = error_answer(503, "unavailable", {"retry-after": "5"})
    server.script(events(f"{FRAMES[0]}retry: 1000\n\n"), unavailable, HONEST)
    assert_everything(client.collect("tiny-1"))
    assert waits == [1.0, 5.0]


def test_raises_the_last_error_after_the_maximum_of_connections_without_events(
    connect: Connect, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(reset, events(""), error_answer(502, "x"))
    with pytest.raises(DarkroomError) as caught:
        connect(server.url, max_retries=2).collect("tiny-1")
    assert (caught.value.status, caught.value.code) == (502, "x")
    server.script(events(""))
    with pytest.raises(DarkroomError, match="connection_failed"):
        connect(server.url, max_retries=0).collect("tiny-1")


def test_reconnects_if_a_connection_falls_silent_or_never_answers(
    connect: Connect, server: ScriptedServer, waits: list[float]
) -> None:
    server.script(events(FRAMES[0], "hang"), hang, HONEST)
    assert_everything(connect(server.url, silence_s=0.5, timeout_s=600).collect("tiny-1"))


@pytest.mark.parametrize("ending", ["end", "cut", "reset"])
def test_does_not_reconnect_if_only_done_is_missing(client: AnyClient, server: ScriptedServer, ending: str) -> None:
    server.script(events("".join(FRAMES[:-1]), ending))
    assert_everything(client.collect("tiny-1"))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_answer(404, "request_not_found"), (404, "request_not_found")),
        (error_answer(410, "request_gone"), (410, "request_gone")),
        (page(200), (200, "invalid_answer")),
    ],
)
def test_raises_permanent_errors(
    client: AnyClient, server: ScriptedServer, answer: Answer, error: tuple[int, str]
) -> None:
    server.script(events(FRAMES[0]), answer)
    with pytest.raises(DarkroomError) as caught:
        client.collect("tiny-1")
    assert (caught.value.status, caught.value.code) == error


START = "".join(FRAMES[:3])
CHUNKS = chunks(4, 0, IMAGE)
END = frame(9, "succeeded", images=[image_info(0, IMAGE)]) + DONE


@pytest.mark.parametrize("present", [CHUNKS[1:], [CHUNKS[0], *CHUNKS[2:]], CHUNKS[:-1], []])
def test_fetches_an_image_with_a_missing_chunk(client: AnyClient, server: ScriptedServer, present: list[str]) -> None:
    server.script(events(START + "".join(present) + END), image_answer(IMAGE))
    found = client.collect("tiny-1")
    assert [event["type"] for event in found] == ["queued", "started", "progress", "image", "succeeded"]
    assert images_of(found) == [IMAGE]
    assert [request.path for request in server.requests][1:] == ["/v1/predict/tiny-1/images/0"]


@pytest.mark.parametrize("b64", ["null", '"AAAA"', '"!"'])
def test_fetches_an_image_with_a_damaged_chunk_over_resets_and_truncated_bodies(
    client: AnyClient, server: ScriptedServer, b64: str
) -> None:
    before, _, rest = CHUNKS[0].partition('"b64": ')
    damaged = f'{before}"b64": {b64}{rest[rest.index("}") :]}'
    truncated = raw(200, IMAGE[:2], {"content-type": "image/png"}, has_length=False)
    answers = [reset, raw(200, IMAGE, sent=10), truncated, image_answer(IMAGE)]
    server.script(events(START + damaged + "".join(CHUNKS[1:]) + END), *answers)
    assert images_of(client.collect("tiny-1")) == [IMAGE]
    assert len(server.requests) == 5


def test_joins_the_chunks_of_the_attempt_after_a_lost_one(client: AnyClient, server: ScriptedServer) -> None:
    lost = chunks(3, 0, bytes(value ^ 255 for value in IMAGE))[:2]
    content = [
        frame(1, "queued", queue_position=0, attempt=1),
        frame(2, "started", attempt=1),
        *lost,
        frame(5, "queued", queue_position=0, attempt=2),
        frame(6, "started", attempt=2),
        *chunks(7, 0, IMAGE),
        frame(11, "succeeded", images=[image_info(0, IMAGE)]) + DONE,
    ]
    server.script(events("".join(content)))
    found = client.collect("tiny-1")
    assert images_of(found) == [IMAGE]
    assert [event["id"] for event in found if event["type"] == "image"] == ["10-0"]


def test_continues_if_another_attempt_makes_an_image_again(client: AnyClient, server: ScriptedServer) -> None:
    content = START + "".join(CHUNKS[1:]) + frame(8, "canceled") + DONE
    server.script(events(content), error_answer(409, "image_not_ready"))
    assert [event["type"] for event in client.collect("tiny-1")] == ["queued", "started", "progress", "canceled"]


def test_does_not_fetch_images_before_the_given_event(client: AnyClient, server: ScriptedServer) -> None:
    server.script(events(END))
    assert names_of(client.collect("tiny-1", after="7-0")) == ["succeeded 9-0"]


def test_leaving_the_loop_closes_the_connection(client: AnyClient, server: ScriptedServer) -> None:
    closed = threading.Event()

    def answer(connection: socket.socket, request: Recorded) -> None:
        events(FRAMES[0], "hang")(connection, request)
        assert connection.recv(1) == b""
        closed.set()

    server.script(answer)
    found: list[bool] = []
    client.leave("tiny-1", lambda: found.append(closed.wait(10)))
    assert found == [True]


def test_stream_yields_every_type_of_event_that_the_api_sends() -> None:
    whole = {ImageEvent, TextEvent}
    assert set(get_args(RequestEvent)) - whole == set(get_args(SentEvent)) - {ImageChunkEvent, TextEndEvent}
    for event, sent in ((TextEvent, TextEndEvent), (ImageEvent, ImageChunkEvent)):
        missing = sent.__required_keys__ - event.__required_keys__
        assert missing <= {"chunk_id", "chunk_index", "total_chunks", "is_chunked", "is_final", "b64"}
