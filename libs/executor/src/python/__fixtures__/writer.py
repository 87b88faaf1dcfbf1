"""Writes words derived from the prompt, row by row, or shows the fault that the prompt names."""

import ctypes
import os
import socket
import sys
import threading
import time

from darkroom_engine import Engine, InvalidRequest, Report, server


class Row:
    def __init__(self, request):
        params = request.input["params"]
        self.prompt = params.get("prompt") or params["messages"][-1]["content"]
        self.request = request
        self.count = int(request.checkpoint or 0)


def sleep_forever(_row):
    time.sleep(1000)


def exhaust_memory(row):
    row.hoard = []
    while True:
        row.hoard.append(bytearray(2**24))


def exhaust_threads(_row):
    stop = threading.Event()
    try:
        while True:
            threading.Thread(target=stop.wait, daemon=True).start()
    finally:
        stop.set()


def print_much(_row):
    for _ in range(20):
        print("printed by the engine")
    os.write(1, b"written by the engine\n")


def write_to_channel(_row):
    os.write(3, b"\x02\x00\x00\x00{}")


def start_child(_row):
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    with open(os.environ["PID_FILE"], "w") as file:
        file.write(str(child))


def leave_child(row):
    start_child(row)
    os._exit(3)


def hang_with_child(row):
    start_child(row)
    sleep_forever(row)


faults = {
    "raise": lambda _row: 1 / 0,
    "refuse late": lambda _row: refuse("prompt: too late"),
    "a segmentation fault": lambda _row: ctypes.string_at(0),
    "an exit": lambda _row: os._exit(3),
    "a connection": lambda _row: socket.create_connection(("127.0.0.1", 1)),
    "sys.exit": lambda _row: sys.exit(4),
    "a hang": sleep_forever,
    "much memory": exhaust_memory,
    "many threads": exhaust_threads,
    "prints": print_much,
    "the channel": write_to_channel,
    "a child that stays": leave_child,
    "a child, and a hang": hang_with_child,
}
reports = {
    "a number": lambda: Report(text=5),
    "half a character": lambda: Report(text="\ud83e"),
    "too long a text": lambda: Report(text="word " * 1000),
    "a step": lambda: Report(step=1),
    "a shape of a report": lambda: skip_validation(),
}


def skip_validation():
    server.Session._report = lambda _session, _row, _report: {"values": 5}
    return Report()


def refuse(message):
    raise InvalidRequest(message)


class Writer(Engine):
    card = {"kind": "text", "maxModelTokens": 4096}
    slots = 3
    is_ill = False

    def create_row(self, request):
        row = Row(request)
        if row.prompt == "nonsense":
            refuse("prompt: makes no sense")
        return row

    def step(self, rows):
        time.sleep(0.001)
        for row in rows:
            if row.count == 1 and row.prompt in faults:
                faults[row.prompt](row)
            if row.prompt == "an illness":
                self.is_ill = True
        return [self._step(row) for row in rows]

    def _step(self, row):
        row.count += 1
        if row.count == 2 and row.prompt in reports:
            return reports[row.prompt]()
        start = (row.count - 1) % len(row.prompt)
        text = f"{row.prompt[start:]}é🦊{row.request.seed}/{row.request.index} "
        left = row.request.input["maxTokens"] - row.count
        return Report(text=text, done=left == 0, steps_left=left)

    def checkpoint(self, row):
        return str(row.count).encode()

    def finish(self, row):
        return {"finishReason": "length", "promptTokens": len(row.prompt)}

    def health(self):
        if self.is_ill:
            raise RuntimeError("the device is gone")


def create_engine(_model):
    return Writer()
