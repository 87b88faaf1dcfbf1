"""Batches of training: for each image several questions."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from train_emoji.pictures import Sprites
from train_emoji.things import Thing

from train_reader.images import draw_image, to_pixel_values
from train_reader.questions import Turn, ask
from train_reader.tokenizer import END, IMAGE, PAD

_TURNS = 5
_CHATS = 0.25
"""Share of images whose questions are one conversation; the others' questions do not see each other."""


@dataclass(frozen=True)
class Batch:
    """The network's input and the tokens to predict; see train_writer.batches.Batch."""

    pixels: torch.Tensor
    """[rows, 3, side, side]"""
    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    wanted: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The network's arguments."""
        return self.pixels, self.ids, self.positions, self.mask, self.wanted


@dataclass(frozen=True)
class _Row:
    ids: list[int]
    positions: list[int]
    sections: list[int]
    """0 for what all sections see, else the number of the section that sees the position."""
    answers: list[bool]
    """True for the positions of an answer."""


class Batches:
    """Batches by the number of a step alone: an interrupted run goes on with the same ones."""

    def __init__(self, tokenizer: Tokenizer, things: tuple[Thing, ...], sprites: Sprites, *, seed: int, rows: int, patches: int) -> None:
        self._tokenizer, self._things, self._sprites = tokenizer, things, sprites
        self._seed, self._rows, self._patches = seed, rows, patches

    def batch_of(self, step: int) -> Batch:
        """The batch of a step."""
        rng, words = np.random.default_rng([self._seed, step]), random.Random(f"{self._seed} {step}")
        images, rows = [], []
        for _ in range(self._rows):
            scene, image = draw_image(rng, int(rng.integers(len(self._things))), self._sprites)
            turns = [ask(scene, self._things, words) for _ in range(_TURNS)]
            images.append(image)
            rows.append(self._row(turns, is_chat=words.random() < _CHATS))
        return _collate(to_pixel_values(np.stack(images)), rows)

    def _row(self, turns: list[Turn], *, is_chat: bool) -> _Row:
        start = self._encode("<|im_start|>user\n") + [IMAGE] * self._patches
        row = _Row([*start], [*range(len(start))], [0] * len(start), [False] * len(start))
        for at, turn in enumerate(turns):
            opening = "<|im_start|>user\n " if is_chat and at > 0 else " "
            question = self._encode(f"{opening}{turn.question}<|im_end|>\n<|im_start|>assistant\n")
            answer = [*self._encode(turn.answer), END]
            after = self._encode("\n") if is_chat else []
            first = len(row.ids) if is_chat else len(start)
            length = len(question) + len(answer) + len(after)
            row.ids.extend([*question, *answer, *after])
            row.positions.extend(range(first, first + length))
            row.sections.extend([0 if is_chat else at + 1] * length)
            row.answers.extend([False] * len(question) + [True] * len(answer) + [False] * len(after))
        return row

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids


def _collate(pixels: np.ndarray, rows: list[_Row]) -> Batch:
    length = max(len(row.ids) for row in rows)
    pad = lambda values, filler: torch.tensor([*values, *[filler] * (length - len(values))])  # noqa: E731
    ids = torch.stack([pad(row.ids, PAD) for row in rows])
    sections = torch.stack([pad(row.sections, -1) for row in rows])
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    seen = (sections[:, None, :] == 0) | (sections[:, None, :] == sections[:, :, None])
    # The position before a token of an answer predicts it.
    answers = torch.stack([pad(row.answers, False) for row in rows]).bool()
    flat = answers.flatten().nonzero()[:, 0]
    count = len(flat)
    return Batch(
        torch.from_numpy(pixels),
        ids,
        torch.stack([pad(row.positions, 0) for row in rows]),
        causal & seen,
        flat - 1,
        ids.flatten()[flat],
        torch.full((count,), 1 / count),
    )
