"""Texts of `stream`, whose chunks workers may repeat, and whose logs may be compacted."""

from __future__ import annotations

from typing import Any

import pytest
from any_client import AnyClient
from scripted_server import DONE, ScriptedServer, error_answer, events, frame, honest, json_answer

from darkroom_client import text_after

USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "cached_tokens": 0, "calls": 4}


def end(sequence: int, text: str, index: int = 0) -> str:
    return frame(sequence, "text", index=index, bytes=len(text.encode()), finish_reason="stop", **USAGE)


def delta(sequence: int, offset: int, text: str, index: int = 0) -> str:
    return frame(sequence, "delta", index=index, offset=offset, text=text, token_ids=[sequence])


def snapshot(sequence: int, offset: int, text: str) -> str:
    return frame(sequence, "snapshot", index=0, offset=offset, text=text, token_ids=[sequence], nfe=1)


def succeeded(sequence: int) -> str:
    return frame(sequence, "succeeded", usage={}, finish_reasons=["stop"]) + DONE


def summary(found: list[Any]) -> list[str]:
    """Return a short description of each event, such as `delta 0 a fox`."""
    return [" ".join(str(event[name]) for name in ("type", "offset", "text") if name in event) for event in found]


def streamed(client: AnyClient, server: ScriptedServer, *frames: str, after: str | None = None) -> list[Any]:
    server.script(events("".join(frames)))
    found: list[Any] = client.collect("tiny-1", after=after)
    return found


# The fox has two UTF-16 units and four bytes.
WRITTEN = [delta(1, 0, "ein grü"), delta(2, 7, "ner "), delta(3, 11, "🦊"), delta(4, 13, "!"), end(5, "ein grüner 🦊!")]
FRAMES = [*WRITTEN, succeeded(6)]
READ = ["delta 0 ein grü", "delta 7 ner ", "delta 11 🦊", "delta 13 !", "text ein grüner 🦊!", "succeeded"]


def test_yields_each_chunk_of_a_text_once_and_then_the_complete_text(client: AnyClient, server: ScriptedServer) -> None:
    found = streamed(client, server, *FRAMES)
    assert summary(found) == READ
    assert (found[0]["index"], found[0]["token_ids"]) == (0, [1])
    assert (found[4]["bytes"], found[4]["finish_reason"]) == (17, "stop")


def test_drops_and_repeats_no_text_if_the_connection_is_cut_at_any_byte(
    client: AnyClient, server: ScriptedServer
) -> None:
    content = "".join(FRAMES).encode()
    for cut in range(0, len(content) + 1, 7):
        server.script(events(content[:cut], ("end", "cut", "reset")[cut % 3]), honest(FRAMES))
        assert summary(client.collect("tiny-1")) == READ


def test_omits_text_that_a_worker_that_takes_over_writes_again(client: AnyClient, server: ScriptedServer) -> None:
    chunks = [delta(1, 0, "a 🦊 "), delta(2, 5, "on "), delta(3, 0, "a 🦊"), delta(4, 4, " on the moon")]
    found = streamed(client, server, *chunks, end(5, "a 🦊 on the moon"), end(6, "a 🦊 on the moon"), succeeded(7))
    assert summary(found) == ["delta 0 a 🦊 ", "delta 5 on ", "delta 8 the moon", "text a 🦊 on the moon", "succeeded"]
    # The ids came with a longer chunk.
    assert "token_ids" not in found[2]


def test_resets_text_that_a_worker_that_takes_over_wrote_differently(client: AnyClient, server: ScriptedServer) -> None:
    reset = frame(2, "reset", index=0, offset=2)
    found = streamed(client, server, delta(1, 0, "a fox on"), reset, delta(3, 2, "cat"), end(4, "a cat"), succeeded(5))
    assert summary(found) == ["delta 0 a fox on", "reset 2", "delta 2 cat", "text a cat", "succeeded"]


def test_yields_snapshots_of_a_block_and_its_final_text_once(client: AnyClient, server: ScriptedServer) -> None:
    blocks = [snapshot(1, 0, "a░ cake░"), snapshot(2, 0, "a red cake on"), snapshot(3, 13, "░ moon")]
    found = streamed(
        client, server, *blocks, snapshot(4, 13, " the moon"), end(5, "a red cake on the moon"), succeeded(6)
    )
    assert summary(found) == [
        "snapshot 0 a░ cake░",
        "snapshot 0 a red cake on",
        "delta 0 a red cake on",
        "snapshot 13 ░ moon",
        "snapshot 13  the moon",
        "delta 13  the moon",
        "text a red cake on the moon",
        "succeeded",
    ]
    assert (found[0]["nfe"], found[0]["token_ids"]) == (1, [1])
    assert "token_ids" not in found[2]


def test_continues_in_a_log_that_was_compacted(client: AnyClient, server: ScriptedServer) -> None:
    shorter = [snapshot(3, 0, "a fox on the"), delta(4, 12, " moon"), end(5, "a fox on the moon"), succeeded(6)]
    server.script(events(delta(1, 0, "a fox ")), events("".join(shorter)))
    assert summary(client.collect("tiny-1")) == [
        "delta 0 a fox ",
        "snapshot 6 on the",
        "delta 6 on the moon",
        "text a fox on the moon",
        "succeeded",
    ]


def test_fetches_each_text_whose_first_part_was_before_the_given_event(
    client: AnyClient, server: ScriptedServer
) -> None:
    texts = [{"index": index, "text": text} for index, text in enumerate(["zero", "one two"])]
    view = json_answer(200, {"request_id": "tiny-1", "texts": texts})
    frames = [delta(4, 4, "two", 1), end(5, "one two", 1), end(6, "zero"), succeeded(7)]
    server.script(events("".join(frames)), error_answer(503, "unavailable"), view, view)
    found = client.collect("tiny-1", after="3-0")
    assert summary(found) == ["delta 4 two", "text one two", "text zero", "succeeded"]
    assert [request.path for request in server.requests][1:] == ["/v1/predict/tiny-1"] * 3


def test_omits_a_text_that_expired_before_it_could_be_fetched(client: AnyClient, server: ScriptedServer) -> None:
    server.script(events(end(3, "gone") + succeeded(4)), error_answer(410, "request_gone"))
    assert summary(client.collect("tiny-1", after="2-0")) == ["succeeded"]


def test_takes_the_first_part_of_a_text_from_a_worker_that_takes_over(
    client: AnyClient, server: ScriptedServer
) -> None:
    chunks = [delta(4, 4, "two"), delta(5, 0, "one tw"), delta(6, 6, "o three")]
    found = streamed(client, server, *chunks, end(7, "one two three"), succeeded(8), after="3-0")
    assert summary(found) == ["delta 4 two", "delta 7  three", "text one two three", "succeeded"]
    assert len(server.requests) == 1


def test_fetches_a_text_whose_bytes_differ_from_its_chunks(client: AnyClient, server: ScriptedServer) -> None:
    view = json_answer(200, {"request_id": "tiny-1", "texts": [{"index": 0, "text": "a fox"}]})
    server.script(events(delta(1, 0, "a ") + end(2, "a fox") + succeeded(3)), view)
    assert summary(client.collect("tiny-1")) == ["delta 0 a ", "text a fox", "succeeded"]


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("a ", {"type": "delta", "offset": 2, "text": "fox"}, "a fox"),
        ("a fox", {"type": "delta", "offset": 2, "text": "fox"}, "a fox"),
        ("🦊 a", {"type": "delta", "offset": 3, "text": "a b"}, "🦊 a b"),
        ("a", {"type": "delta", "offset": 2, "text": "fox"}, "a"),
        ("🦊 red fox", {"type": "snapshot", "offset": 3, "text": "blue"}, "🦊 blue"),
        ("🦊 red fox", {"type": "reset", "offset": 2}, "🦊"),
    ],
)
def test_text_after_applies_a_change_at_an_offset_in_utf16_units(text: str, change: Any, expected: str) -> None:
    assert text_after(text, change) == expected
