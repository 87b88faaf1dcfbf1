"""The loop of both trainings: rate, averaged weights, checkpoints, going on.

What a step does depends on the weights and its number alone, so a run that was interrupted ends in the weights of one that was not, on
the same machine with the same number of threads.
"""

import copy
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from train_writer.batches import Batch
from train_writer.model import Network
from train_writer.muon import Muon

_SECONDS_BETWEEN_CHECKPOINTS = 60
_SECONDS_BETWEEN_REPORTS = 20
_CLIP = 1.0
_AVERAGING = 0.995
"""Of the averaged weights, which are the result: how much stays at a step."""


@dataclass(frozen=True)
class Schedule:
    """How long, how fast."""

    steps: int
    rate: float
    """The highest learning rate."""
    warmup: int = 60
    """Steps in which the rate rises to it."""
    fall: int = 0
    """Steps at the end in which it falls to zero, along a line."""

    def rate_at(self, step: int) -> float:
        """The rate of a step."""
        risen = (step + 1) / self.warmup
        left = (self.steps - step) / self.fall if self.fall else 1.0
        return self.rate * min(1.0, risen, left)


def train(
    network: Network,
    batch_of: Callable[[int], Batch],
    schedule: Schedule,
    checkpoint: Path,
    stop_after: int | None = None,
) -> Network | None:
    """Trains from the checkpoint, if there is one, to the end.

    Args:
        network: what to begin with.
        batch_of: the batch of a step.
        schedule: how long, how fast.
        checkpoint: where to keep what an interrupted run goes on with.
        stop_after: so many steps of this call, in tests.

    Returns:
        The averaged weights, or None if it was stopped.
    """
    matrices = [weight for name, weight in network.named_parameters() if weight.dim() == 2 and "embedding" not in name]
    others = [weight for weight in network.parameters() if all(weight is not matrix for matrix in matrices)]
    optimizers = [Muon(matrices, lr=0.0), torch.optim.AdamW(others, lr=0.0, betas=(0.9, 0.98), weight_decay=0.0)]
    averaged = copy.deepcopy(network).requires_grad_(False)
    state = _State(network, averaged, optimizers)
    first = state.load(checkpoint) if checkpoint.exists() else 0
    last = schedule.steps if stop_after is None else min(schedule.steps, first + stop_after)
    saved = reported = began = time.monotonic()
    losses: list[float] = []
    for step in range(first, last):
        losses.append(_take_step(network, optimizers, batch_of(step), schedule.rate_at(step)))
        with torch.no_grad():
            kept = min(_AVERAGING, (step + 1) / (step + 10))
            torch._foreach_lerp_([*averaged.parameters()], [*network.parameters()], 1 - kept)
        now = time.monotonic()
        if now - reported > _SECONDS_BETWEEN_REPORTS or step + 1 == last:
            mean, pace = sum(losses) / len(losses), (now - began) / (step + 1 - first)
            _report(f"{checkpoint.stem}: step {step + 1} of {schedule.steps}, loss {mean:.4f}", pace, schedule.steps - step - 1)
            reported, losses = now, []
        if now - saved > _SECONDS_BETWEEN_CHECKPOINTS or (step + 1 == last and last < schedule.steps):
            state.save(checkpoint, step + 1)
            saved = now
    return averaged.eval() if last == schedule.steps else None


def _report(done: str, pace: float, steps_left: int) -> None:
    print(f"{done}, {pace:.2f} s a step, {pace * steps_left / 60:.0f} min left", flush=True)


def _take_step(network: Network, optimizers: list[torch.optim.Optimizer], batch: Batch, rate: float) -> float:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate
    with torch.autocast("cpu", torch.bfloat16, enabled=computes_in_bfloat16()):
        logits = network(*batch.inputs)
    loss = (F.cross_entropy(logits.float(), batch.targets, reduction="none") * batch.weights).sum()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def computes_in_bfloat16() -> bool:
    """Whether the CPU has instructions for it: elsewhere it is far slower than float32."""
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


@dataclass(frozen=True)
class _State:
    network: Network
    averaged: Network
    optimizers: list[torch.optim.Optimizer]

    def save(self, path: Path, step: int) -> None:
        """Whole or not at all: a run that is killed meanwhile has the one before."""
        partial = path.with_name(f"{path.name}.partial")
        modules = {"network": self.network.state_dict(), "averaged": self.averaged.state_dict()}
        with partial.open("wb") as file:
            torch.save({"step": step, **modules, "optimizers": [o.state_dict() for o in self.optimizers]}, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def load(self, path: Path) -> int:
        """The step to go on with."""
        state = torch.load(path, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.averaged.load_state_dict(state["averaged"])
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        return state["step"]
