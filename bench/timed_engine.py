"""The example with diffusers, which also records when each step begins and ends."""

import sys
import time
from pathlib import Path

packages = Path(__file__).parent.parent / "libs/executor/python"
sys.path[:0] = [str(packages), str(packages / "examples")]

from darkroom_engine import Request, rpc  # noqa: E402
from stable_diffusion import StableDiffusion  # noqa: E402


class TimedEngine(StableDiffusion):
    """Times are those of the monotonic clock, in seconds."""

    def __init__(self, model):
        super().__init__(model)
        self.steps = []

    def step(self, rows):
        began = time.perf_counter()
        reports = super().step(rows)
        self.steps.append((began, time.perf_counter()))
        return reports

    @rpc
    def times(self):
        """Return the beginning and the end of each step since the last call."""
        times, self.steps = self.steps, []
        return times


create_engine = TimedEngine


def run_without_worker(count, steps, fields):
    """Return the times of the same steps in a loop, without a worker."""
    engine = TimedEngine("bare")
    rows = [engine.create_row(Request(index, index, fields)) for index in range(count)]
    for _ in range(steps):
        engine.step(rows)
    return engine.times()
