"""Draws images of one colour, row by row, or shows the fault that the prompt names."""

import struct
import time
import zlib

from darkroom_engine import Engine, InvalidRequest, Report, rpc


class Row:
    def __init__(self, request):
        self.request = request
        self.steps = request.input["numInferenceSteps"]
        self.step = 0
        self.value = zlib.crc32(f"{request.seed} {request.input['prompt']}".encode())
        if request.checkpoint is not None:
            self.step, self.value = struct.unpack("<II", request.checkpoint)


class Painter(Engine):
    card = {
        "kind": "image",
        "sizes": {"multiple": 8, "min": 8, "max": 1024, "default": {"width": 16, "height": 16}},
        "steps": {"min": 1, "max": 1000, "default": 4},
    }
    slots = 3

    def __init__(self, model):
        self.model = model
        self.largest_step = 0

    def create_row(self, request):
        if request.input["prompt"] == "nonsense":
            raise InvalidRequest("prompt: makes no sense")
        return Row(request)

    def step(self, rows):
        self.largest_step = max(self.largest_step, len(rows))
        time.sleep(0.003)
        return [self._step(row) for row in rows]

    def _step(self, row):
        row.step += 1
        row.value = zlib.crc32(struct.pack("<II", row.step, row.value))
        is_due = row.request.wants_preview(row.step)
        preview = {"data": bytes([row.step % 256] * 12), "width": 2, "height": 2} if is_due else None
        left = row.steps - row.step
        return Report(step=row.step, preview=preview, done=left == 0, steps_left=left)

    def checkpoint(self, row):
        return struct.pack("<II", row.step, row.value)

    def finish(self, row):
        size = row.request.input["width"] * row.request.input["height"]
        return struct.pack("<I", row.value)[:3] * size

    def shape(self, row):
        return f"{row.request.input['width']}x{row.request.input['height']}"

    @rpc
    def statistics(self, unit="rows"):
        return {"largest_step": self.largest_step, "unit": unit}


create_engine = Painter
