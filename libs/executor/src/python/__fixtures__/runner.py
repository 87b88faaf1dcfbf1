"""Draws several images of one colour in one call, without steps of its own."""

import time
import zlib

from darkroom_engine import InvalidRequest, RunEngine, rpc


class Runner(RunEngine):
    card = {
        "kind": "image",
        "sizes": {"multiple": 8, "min": 8, "max": 1024, "default": {"width": 16, "height": 16}},
        "steps": {"min": 1, "max": 1000, "default": 4},
    }
    slots = 4

    def __init__(self, _model):
        self.runs = []

    def check(self, request):
        if request.input["prompt"] == "nonsense":
            raise InvalidRequest("prompt: makes no sense")

    def run(self, requests):
        self.runs.append(len(requests))
        if any(request.input["prompt"] == "too many" for request in requests) and len(requests) > 1:
            raise MemoryError
        for step in range(1, max(request.input["numInferenceSteps"] for request in requests)):
            time.sleep(0.002)
            for request in requests:
                if step <= request.input["numInferenceSteps"] and not request.canceled:
                    request.report(step=step)
        return [self._draw(request) for request in requests]

    def _draw(self, request):
        if request.input["prompt"] == "refused late":
            return InvalidRequest("prompt: is too hard")
        value = zlib.crc32(f"{request.seed} {request.input['prompt']}".encode()).to_bytes(4, "little")
        return value[:3] * (request.input["width"] * request.input["height"])

    @rpc
    def sizes_of_runs(self):
        return self.runs


create_engine = Runner
