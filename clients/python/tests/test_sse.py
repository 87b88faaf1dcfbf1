"""The parser of server-sent events."""

import pytest

from darkroom_client.sse import EventParser, Message

TEXT = "id: 1-0\nevent: failed\ndata: grün 😀\n\n: heartbeat\n\ndata: a\ndata:b\nid: 2\n\n"
MESSAGES = [Message("failed", "grün 😀", "1-0"), Message(is_comment=True), Message("", "a\nb", "2")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_parses_any_line_end_in_parts_of_any_size(line_end: str, size: int) -> None:
    # A comment after the end: a parser must wait for the byte after a carriage return.
    content = (TEXT + ":\n").replace("\n", line_end).encode() + b"x"
    parser = EventParser()
    found = [message for at in range(0, len(content), size) for message in parser.feed(content[at : at + size])]
    assert found == [*MESSAGES, Message(is_comment=True)]


def test_drops_an_incomplete_message() -> None:
    assert EventParser().feed(b"id: 1\ndata: half\n") == []


def test_reads_retry_in_milliseconds_and_ignores_invalid_ones() -> None:
    parser = EventParser()
    assert parser.feed(b"retry: 1500\n\nretry: soon\n\nretry: -1\n\n") == []
    assert parser.retry_s == 1.5


def test_ignores_a_byte_order_mark_unknown_fields_and_events_without_data() -> None:
    content = "\ufeffid: 1\nx: y\ndata\n\nevent: empty\n\n\ufeff: no comment\n\n"
    assert EventParser().feed(content.encode()) == [Message("", "", "1")]
