"""A parser of server-sent events."""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Message:
    """An event, or a comment, which servers send as heartbeats."""

    event: str = ""
    data: str = ""
    id: str | None = None
    is_comment: bool = False


class EventParser:
    """Parses the bytes of one connection. A message is complete at its empty line; one that is cut is dropped."""

    def __init__(self) -> None:
        self.retry_s: float | None = None
        """Seconds of the server's last `retry:`."""
        self._buffer = b""
        self._is_first_line = True
        self._data: list[str] = []
        self._event = ""
        self._id: str | None = None

    def feed(self, part: bytes) -> list[Message]:
        r"""Return the messages that are complete now. A last `\r` waits for its possible `\n`."""
        buffer = self._buffer + part
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = LINE_END.split(buffer[: len(buffer) - len(held)])
        self._buffer = rest + held
        found = [self._take_line(line.decode(errors="replace")) for line in lines]
        return [message for message in found if message is not None]

    def _take_line(self, line: str) -> Message | None:
        if self._is_first_line:
            line = line.removeprefix("\ufeff")
            self._is_first_line = False
        if line == "":
            return self._end_message()
        name, _colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "":
            return Message(is_comment=True)
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch("[0-9]{1,9}", value) is not None:
            self.retry_s = int(value) / 1000
        return None

    def _end_message(self) -> Message | None:
        message = Message(self._event, "\n".join(self._data), self._id) if self._data else None
        self._data, self._event, self._id = [], "", None
        return message
