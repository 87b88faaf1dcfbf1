"""Frames between a worker and this process: docs/engine-protocol.md."""

from __future__ import annotations

import json
import math
import socket
import struct
from typing import Any


def as_bytes(value: Any) -> Any:
    """Return the bytes of a buffer, such as a NumPy array or a tensor of uint8, without a copy where it can."""
    if isinstance(value, (bytes, bytearray)):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    view = memoryview(value)
    if view.itemsize != 1:
        raise TypeError(f"received a buffer of {view.format}, expected one of bytes (uint8)")
    return view.cast("B") if view.c_contiguous else view.tobytes()


def is_buffer(value: Any) -> bool:
    """Return whether a value is bytes, an array or a tensor."""
    if isinstance(value, (bytes, bytearray, memoryview)) or hasattr(value, "detach"):
        return True
    try:
        memoryview(value)
        return True
    except TypeError:
        return False


def encode(message: Any) -> list[Any]:
    """Return the chunks of a frame."""
    found: list[tuple[list[str], Any]] = []

    def bare(value: Any, path: list[str]) -> Any:
        if isinstance(value, dict):
            return {str(name): bare(field, [*path, str(name)]) for name, field in value.items()}
        if isinstance(value, (list, tuple)):
            return [bare(each, [*path, str(at)]) for at, each in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{'.'.join(path)} is {value}, expected a finite number")
        if value is None or isinstance(value, (str, int, float)):
            return value
        if not is_buffer(value):
            raise TypeError(f"{'.'.join(path)} is a {type(value).__name__}, expected a value of JSON, or bytes")
        found.append((path, as_bytes(value)))
        return None

    bare_message = bare(message, [])
    sizes = [[path, len(data)] for path, data in found]
    header = json.dumps({"message": bare_message, "bytes": sizes}, allow_nan=False).encode("ascii")
    return [struct.pack("<I", len(header)) + header, *(data for _, data in found)]


class Channel:
    """The socket to the worker."""

    def __init__(self, descriptor: int):
        self._socket = socket.socket(fileno=descriptor)
        # Programs that the engine starts must not hold it.
        self._socket.set_inheritable(False)

    def send(self, message: Any) -> None:
        """Send a message. Values of it that are bytes, arrays or tensors are sent as bytes."""
        self.send_frame(encode(message))

    def send_frame(self, chunks: list[Any]) -> None:
        """Send the chunks that `encode` returned."""
        for chunk in chunks:
            self._socket.sendall(chunk)

    def receive(self) -> Any:
        """Wait for a message. Raises EOFError if the worker has gone."""
        (length,) = struct.unpack("<I", self._read(4))
        header = json.loads(bytes(self._read(length)))
        message = header["message"]
        for path, size in header["bytes"]:
            *parents, name = path
            target = message
            for each in parents:
                target = target[int(each) if isinstance(target, list) else each]
            target[int(name) if isinstance(target, list) else name] = bytes(self._read(size))
        return message

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while len(view) > 0:
            count = self._socket.recv_into(view)
            if count == 0:
                raise EOFError
            view = view[count:]
        return data
