"""The loop that all stages share: learning rate, averaged weights, checkpoints, resuming, progress.

What a step does depends on the weights and its number only: each stage draws a step's data from a generator seeded with
that number. So a run that was interrupted ends in the very weights of one that was not (on the same machine, with the
same number of threads), and data may be prepared by any number of processes.
"""

import copy
import math
import os
import time
from abc import abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

_SECONDS_BETWEEN_CHECKPOINTS = 120
_SECONDS_BETWEEN_REPORTS = 15

Batch = dict[str, torch.Tensor]


class Stage(Dataset):
    """A training run: what to train, on what. As a dataset it gives the batch of a step, as numpy arrays."""

    name: str
    steps: int
    rate: float
    """The highest learning rate."""
    warmup: float
    """The share of the work in which the rate rises to it."""
    hold: float
    """The share of the work after which the rate falls to `floor` times itself, along a cosine."""
    floor: float
    averaging: float
    """Of the averaged weights, which are the stage's result: how much stays at an update; every second step has one."""
    clip: float = 1.0
    modules: nn.ModuleDict
    """What is trained and averaged."""
    optimizers: list[torch.optim.Optimizer]
    """A group of theirs may have a "factor" for its learning rate."""

    @abstractmethod
    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        """The batch of a step."""

    def __len__(self) -> int:
        return self.steps

    @abstractmethod
    def loss(self, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """What is minimized, and what to report."""

    def work(self, step: int) -> float:
        """The share of the work that is done before a step, 0…1."""
        return step / self.steps


@dataclass(frozen=True)
class Conditions:
    """Where and how long a run may run."""

    device: str = "cpu"
    workers: int = 0
    """Processes that prepare data; 0: the one that trains."""
    deadline: float = math.inf
    """When to stop at a checkpoint, in seconds of time.monotonic()."""
    stop_after_steps: int | None = None
    """Of this call, in tests."""


def generator_of(seed: int, stage: str, step: int) -> np.random.Generator:
    """The source of all that is random in a step."""
    return np.random.default_rng([seed, *stage.encode(), step])


def run_stage(stage: Stage, checkpoint: Path, conditions: Conditions) -> nn.ModuleDict | None:
    """Trains from the checkpoint, if there is one, to the end.

    Returns:
        The averaged modules, or None if the deadline came first: then `checkpoint` has all to go on with.
    """
    device = torch.device(conditions.device)
    stage.modules.to(device).train()
    averaged = copy.deepcopy(stage.modules).requires_grad_(False)
    first = _load_checkpoint(checkpoint, stage, averaged, device) if checkpoint.exists() else 0
    last = stage.steps if conditions.stop_after_steps is None else min(first + conditions.stop_after_steps, stage.steps)
    loader = DataLoader(
        stage,
        batch_size=None,
        sampler=range(first, last),
        num_workers=conditions.workers,
        pin_memory=device.type == "cuda",
    )
    progress = _Progress(stage, first)
    saved = time.monotonic()
    for step, batch in enumerate(loader, first):
        _take_step(
            stage,
            averaged,
            step,
            {name: value.to(device, non_blocking=True) for name, value in batch.items()},
            progress,
        )
        now = time.monotonic()
        if now > conditions.deadline or now - saved > _SECONDS_BETWEEN_CHECKPOINTS:
            _save_checkpoint(checkpoint, stage, averaged, step + 1)
            saved = now
        if now > conditions.deadline and step + 1 < stage.steps:
            return None
    if last < stage.steps:
        _save_checkpoint(checkpoint, stage, averaged, last)
        return None
    return averaged.to("cpu").eval()


def _take_step(stage: Stage, averaged: nn.ModuleDict, step: int, batch: Batch, progress: "_Progress") -> None:
    rate = learning_rate(stage, step)
    for optimizer in stage.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("factor", 1.0)
    loss, figures = stage.loss(batch)
    loss.backward()
    nn.utils.clip_grad_norm_(stage.modules.parameters(), stage.clip)
    for optimizer in stage.optimizers:
        optimizer.step()
        optimizer.zero_grad()
    if step % 2 == 1:
        updates = (step + 1) // 2
        kept = min(stage.averaging, updates / (updates + 10))
        with torch.no_grad():
            torch._foreach_lerp_([*averaged.parameters()], [*stage.modules.parameters()], 1 - kept)
    progress.add(step, rate, figures)


def learning_rate(stage: Stage, step: int) -> float:
    """Rises along a line, holds, falls along a cosine."""
    done = stage.work(step)
    risen = min(1.0, stage.work(step + 1) / stage.warmup)
    if done < stage.hold:
        return stage.rate * risen
    fallen = 0.5 * (1 + math.cos(math.pi * (done - stage.hold) / (1 - stage.hold)))
    return stage.rate * risen * (fallen * (1 - stage.floor) + stage.floor)


def _save_checkpoint(path: Path, stage: Stage, averaged: nn.ModuleDict, step: int) -> None:
    """Whole or not at all: a run that is killed meanwhile has the one before."""
    state = {
        "stage": stage.name,
        "step": step,
        "modules": stage.modules.state_dict(),
        "averaged": averaged.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in stage.optimizers],
    }
    save_whole(state, path)
    print(f"{stage.name}: checkpoint at step {step} of {stage.steps}", flush=True)


def save_whole(state: object, path: Path) -> None:
    """`torch.save` that leaves the old file or the new one, whenever it is killed."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _load_checkpoint(path: Path, stage: Stage, averaged: nn.ModuleDict, device: torch.device) -> int:
    state = torch.load(path, map_location=device, weights_only=True)
    averaged.load_state_dict(state["averaged"])
    # One that traveled (travel.py) has the averaged weights only, at half precision.
    stage.modules.load_state_dict(state.get("modules", state["averaged"]))
    for optimizer, kept in zip(stage.optimizers, state.get("optimizers", []), strict=False):
        optimizer.load_state_dict(kept)
    print(f"{stage.name}: going on at step {state['step']} of {stage.steps}", flush=True)
    return state["step"]


class _Progress:
    """A line now and then: means since the last one, speed, time left."""

    def __init__(self, stage: Stage, first: int) -> None:
        self._stage, self._first, self._began = stage, first, time.monotonic()
        self._reported = self._began
        self._figures: dict[str, list[torch.Tensor]] = defaultdict(list)

    def add(self, step: int, rate: float, figures: dict[str, torch.Tensor]) -> None:
        for name, value in figures.items():
            self._figures[name].append(value.detach())
        now, done = time.monotonic(), step + 1
        if now - self._reported < _SECONDS_BETWEEN_REPORTS and done != self._stage.steps:
            return
        means = ", ".join(f"{name} {torch.stack(values).mean().item():.4f}" for name, values in self._figures.items())
        speed = (done - self._first) / (now - self._began)
        work, began = self._stage.work(done), self._stage.work(self._first)
        minutes_left = (now - self._began) / (work - began) * (1 - work) / 60
        line = f"{self._stage.name}: step {done} of {self._stage.steps}, {means}, rate {rate:.1e}"
        print(f"{line}, {speed:.2f} steps/s, {minutes_left:.1f} min left", flush=True)
        self._reported = now
        self._figures.clear()
