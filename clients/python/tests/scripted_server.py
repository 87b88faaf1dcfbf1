"""A real HTTP server on a socket with scripted responses, which can break connections."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recorded:
    """A request that the server received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[socket.socket, Recorded], None]


class ScriptedServer:
    """Sends the answers in order, each on a connection of its own, and then a 500, which clients do not retry."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self._answers: list[Answer] = []
        self._hanging: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def script(self, *answers: Answer) -> None:
        """Begin a new script."""
        self.requests.clear()
        self._answers = list(answers)

    def close(self) -> None:
        """Close all sockets."""
        for each in (self._listener, *self._hanging):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            self._hanging.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if request is None:
            return
        self.requests.append(request)
        index = len(self.requests) - 1
        answer = self._answers[index] if index < len(self._answers) else error_answer(500, "not_in_the_script")
        answer(connection, request)


def _read_request(connection: socket.socket) -> Recorded | None:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if part == b"":
            return None
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, path, _version = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Recorded(method, path, headers, body)


def reset(connection: socket.socket, _request: Recorded | None = None) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def hang(_connection: socket.socket, _request: Recorded) -> None:
    """Send nothing, and leave the connection open."""


def raw(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    has_length: bool = True,
    sent: int | None = None,
) -> Answer:
    """Send a body, or only its first `sent` bytes before a reset."""

    def answer(connection: socket.socket, _request: Recorded) -> None:
        length = {"content-length": str(len(body))} if has_length else {}
        fields = {"connection": "close", **length, **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        connection.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body[:sent])
        if sent is None:
            connection.close()
        else:
            reset(connection)

    return answer


def json_answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """Send JSON."""
    return raw(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})


def error_answer(status: int, code: str, headers: Mapping[str, str] | None = None, param: str | None = None) -> Answer:
    """Send an error of the API."""
    message = f"it is {code}"
    return json_answer(
        status, {"message": message, "error": {"message": message, "code": code, "param": param}}, headers
    )


def page(status: int) -> Answer:
    """Send an HTML page, like a proxy."""
    return raw(status, b"<html>", {"content-type": "text/html"})


def image_answer(data: bytes) -> Answer:
    """Send an image."""
    return raw(200, data, {"content-type": "image/png"})


def events(content: str | bytes, ending: str = "end") -> Answer:
    """Send a stream of events. `ending` is `end`, `cut` (without the last chunk of HTTP), `reset` or `hang`."""
    data = content.encode() if isinstance(content, str) else content

    def answer(connection: socket.socket, _request: Recorded) -> None:
        head = "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\nconnection: close\r\n"
        chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b""
        connection.sendall(
            f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + chunk + (b"0\r\n\r\n" if ending == "end" else b"")
        )
        if ending == "reset":
            reset(connection)
        elif ending != "hang":
            connection.close()

    return answer


def honest(frames: Iterable[str]) -> Answer:
    """Send the events after `Last-Event-ID`, like the API."""

    def answer(connection: socket.socket, request: Recorded) -> None:
        last = int(request.headers.get("last-event-id", "0").partition("-")[0])
        later = [text for text in frames if (found := re.match("id: ([0-9]+)", text)) is None or int(found[1]) > last]
        events("".join(later))(connection, request)

    return answer


def frame(sequence: int, name: str, **data: Any) -> str:
    """Return one message of a stream."""
    common = {"request_id": "tiny-1", "timestamp": "2026-01-01T00:00:00.000Z"}
    return f"id: {sequence}-0\nevent: {name}\ndata: {json.dumps({**common, **data}, ensure_ascii=False)}\n\n"


DONE = "data: [DONE]\n\n"
