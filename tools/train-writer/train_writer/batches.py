"""What a training step sees: conversations as rows of numbers, for both kinds of model."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer

from train_writer.chats import make_chat
from train_writer.tokenizer import END, MASK, PAD, render

_STEPS_TOGETHER = 16
"""So many steps' conversations are drawn at once and sorted by length."""
_ALIGNED = 0.12
"""Block diffusion: the share of rows whose blocks stand at multiples of the block's size, as SDAR has them."""
_AFTER_THE_END = 0.3
"""Block diffusion: how much a token behind the end counts."""


@dataclass(frozen=True)
class Sample:
    """One conversation."""

    ids: np.ndarray
    answers: list[tuple[int, int]]
    """Where answers begin, and where they have ended: after <|im_end|>."""


@dataclass(frozen=True)
class Batch:
    """What the network reads, and what it should have said."""

    ids: torch.Tensor
    """[batch, length]"""
    positions: torch.Tensor
    """[batch or 1, length]"""
    mask: torch.Tensor
    """[batch or 1, length, length]: true where a row may look at a column."""
    wanted: torch.Tensor
    """Flat positions that have a target: [count]."""
    targets: torch.Tensor
    """[count]"""
    weights: torch.Tensor
    """Of the targets in the loss; their sum is 1: [count]."""

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The network's arguments."""
        return self.ids, self.positions, self.mask, self.wanted


class Samples:
    """Conversations by the number of a step alone: an interrupted run goes on with the same ones."""

    def __init__(self, tokenizer: Tokenizer, seed: str, size: int) -> None:
        self._tokenizer, self._seed, self._size = tokenizer, seed, size
        self._first, self._kept = -1, list[list[Sample]]()

    def of_step(self, step: int) -> list[Sample]:
        """Of one step, of like lengths."""
        first = step - step % _STEPS_TOGETHER
        if first != self._first:
            rng = random.Random(f"{self._seed} {first}")
            drawn = [self._draw(rng) for _ in range(_STEPS_TOGETHER * self._size)]
            drawn.sort(key=lambda sample: len(sample.ids))
            self._kept = [drawn[at : at + self._size] for at in range(0, len(drawn), self._size)]
            rng.shuffle(self._kept)
            self._first = first
        return self._kept[step - first]

    def _draw(self, rng: random.Random) -> Sample:
        return read_sample(self._tokenizer, make_chat(rng).messages())


def read_sample(tokenizer: Tokenizer, messages: list[tuple[str, str]]) -> Sample:
    """The tokens of a conversation, up to the end of its last answer."""
    ids = np.array(tokenizer.encode(render(messages, False), add_special_tokens=False).ids)
    ends = np.flatnonzero(ids == END) + 1
    begins = [0, *(ends[:-1] + 1)]
    head = len(tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False).ids)
    spoken = [role for role, _ in messages]
    answers = [(int(b) + head, int(e)) for b, e, role in zip(begins, ends, spoken, strict=True) if role == "assistant"]
    return Sample(ids[: ends[-1]], answers)


def causal_batch(samples: list[Sample]) -> Batch:
    """Each position says the next token; all answers of a conversation count."""
    length = max(len(sample.ids) for sample in samples) - 1
    ids = np.full((len(samples), length), PAD)
    targets = np.full((len(samples), length), -1)
    for row, sample in enumerate(samples):
        ids[row, : len(sample.ids) - 1] = sample.ids[:-1]
        for begin, end in sample.answers:
            targets[row, begin - 1 : end - 1] = sample.ids[begin:end]
    wanted = np.flatnonzero(targets.ravel() >= 0)
    return Batch(
        ids=torch.from_numpy(ids),
        positions=torch.arange(length)[None],
        mask=torch.ones(1, length, length, dtype=torch.bool).tril(),
        wanted=torch.from_numpy(wanted),
        targets=torch.from_numpy(targets.ravel()[wanted]),
        weights=torch.full((len(wanted),), 1 / len(wanted)),
    )


def diffusion_batch(samples: list[Sample], block: int, rng: np.random.Generator) -> Batch:
    """One answer of each conversation, block by block: a row is the prompt, the answer clean, and masked copies of its blocks.

    What is clean sees the pieces of its own and those before; a copy sees itself and the clean pieces before its place. So the
    prompt is read once, and every block of the answer is learnt from (the two streams of BD3-LM, arXiv 2503.09573).
    """
    rows = [_write_row(sample, block, rng) for sample in samples]
    length = max(row.shape[1] for row in rows)
    fields = np.stack([np.pad(row, ((0, 0), (0, length - row.shape[1])), constant_values=-1) for row in rows], 1)
    ids, positions, piece, copy, targets = fields[:5].astype(np.int64)
    padded = piece < 0
    sees_before = (copy[:, None] == 0) & (piece[:, None] < piece[:, :, None])
    sees_itself = (copy[:, None] == copy[:, :, None]) & (piece[:, None] == piece[:, :, None])
    wanted = np.flatnonzero(targets.ravel() >= 0)
    weights = torch.from_numpy(fields[5].ravel()[wanted]).float()
    return Batch(
        ids=torch.from_numpy(np.where(padded, PAD, ids)),
        positions=torch.from_numpy(np.where(padded, 0, positions)),
        mask=torch.from_numpy((sees_before | sees_itself) & ~(padded[:, None] & ~padded[:, :, None])),
        wanted=torch.from_numpy(wanted),
        targets=torch.from_numpy(targets.ravel()[wanted]),
        weights=weights / weights.sum(),
    )


def _write_row(sample: Sample, block: int, rng: np.random.Generator) -> np.ndarray:
    """[ids, positions, piece, copy, targets, weights] of a row; copy 0 is what is clean, targets are −1 where there is none."""
    begin, end = sample.answers[rng.integers(len(sample.answers))]
    aligned = rng.random() < _ALIGNED
    shared = begin % block if aligned else 0  # tokens of the prompt that stand in the first block
    start = begin - shared
    parts = [_clean(sample.ids[:start], np.arange(start), _cut_prompt(start, block, aligned, rng))]
    first = int(parts[0][2, -1]) + 1 if start else 0
    blocks = -(-(end - start) // block)
    answer = np.full(blocks * block, PAD)
    answer[: end - start] = sample.ids[start:end]
    places = start + np.arange(len(answer))
    numbers = np.arange(len(answer)) // block
    clean = len(answer) - block
    parts.append(_clean(answer[:clean], places[:clean], first + numbers[:clean]))
    copy = 0
    for number in range(blocks):
        inside = numbers == number
        free = np.arange(shared if number == 0 else 0, block)
        for hidden in _choose_hidden(free, 2 if number == 0 else 1, rng):
            copy += 1
            ids, targets, weights = answer[inside].copy(), np.full(block, -1), np.zeros(block)
            targets[hidden] = ids[hidden]
            weights[hidden] = np.where(ids[hidden] == PAD, _AFTER_THE_END, 1.0) / len(hidden)
            ids[hidden] = MASK
            parts.append(np.stack([ids, places[inside], np.full(block, first + number), np.full(block, copy), targets, weights]))
    return np.concatenate(parts, 1)


def _clean(ids: np.ndarray, places: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    nothing = np.zeros(len(ids))
    return np.stack([ids, places, pieces, nothing, nothing - 1, nothing]).astype(float)


def _cut_prompt(length: int, block: int, aligned: bool, rng: np.random.Generator) -> np.ndarray:
    """The piece that each token of a prompt is read in: whole, in blocks or cut anywhere, since servers do as they like."""
    how = rng.random()
    places = np.arange(length)
    if aligned or how > 0.75:
        return places // block
    if how < 0.5 or length < 2:
        return np.zeros(length)
    return np.searchsorted(np.sort(rng.integers(1, length, rng.integers(1, 5))), places, side="right")


def _choose_hidden(free: np.ndarray, copies: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Positions to mask in each copy: all of them in the first one of two, as when a block begins; else some."""
    chosen = [free] if copies == 2 or rng.random() < 0.5 else []
    while len(chosen) < copies:
        few = rng.random() < 0.6
        most = min(3, len(free)) if few else len(free)
        chosen.append(np.sort(rng.permutation(free)[: rng.integers(1, most + 1)]))
    return chosen
