"""What a step sees: targets where they belong, and nothing that gives them away."""

import random

import numpy as np
import pytest
import torch

from train_writer.batches import Samples, causal_batch, diffusion_batch, read_sample
from train_writer.chats import make_chat
from train_writer.tokenizer import END, MASK, PAD

BLOCK = 8


@pytest.fixture
def samples(tokenizer):
    rng = random.Random(5)
    return [read_sample(tokenizer, make_chat(rng).messages()) for _ in range(12)]


def test_a_sample_knows_its_answers(tokenizer):
    messages = [
        ("user", "a cat"),
        ("assistant", "a cat on a red background"),
        ("user", "blue"),
        ("assistant", "a cat on a blue background"),
    ]
    sample = read_sample(tokenizer, messages)
    said = [tokenizer.decode(sample.ids[begin:end].tolist(), skip_special_tokens=False) for begin, end in sample.answers]
    assert said == [f"{text}<|im_end|>" for role, text in messages if role == "assistant"]
    assert sample.ids[-1] == END


def test_the_causal_batch_asks_for_every_answer(samples):
    batch = causal_batch(samples)
    assert len(batch.wanted) == sum(end - begin for sample in samples for begin, end in sample.answers)
    length = batch.ids.shape[1]
    for place, target in zip(batch.wanted.tolist(), batch.targets.tolist(), strict=True):
        row, at = divmod(place, length)
        assert samples[row].ids[at + 1] == target
    assert batch.weights.sum().item() == pytest.approx(1)


def test_no_target_of_block_diffusion_can_be_seen_from_its_place(samples):
    for seed in range(8):
        batch = diffusion_batch(samples, BLOCK, np.random.default_rng(seed))
        rows, length = batch.ids.shape
        flat = batch.ids.ravel()
        assert (flat[batch.wanted] == MASK).all()
        for place, target in zip(batch.wanted.tolist(), batch.targets.tolist(), strict=True):
            row, at = divmod(place, length)
            seen = batch.mask[row, at].nonzero().ravel()
            same = seen[batch.positions[row, seen] == batch.positions[row, at]]
            assert same.tolist() == [at], "another copy of the position"
            assert (batch.positions[row, seen] < batch.positions[row, at] + BLOCK).all()
            assert target != MASK
        assert rows == len(samples)


def test_block_diffusion_reads_each_copy_as_decoding_does(samples, network):
    """The logits of a copy are those of the plain sequence: the pieces before it and itself, and nothing else."""
    batch = diffusion_batch(samples[:4], BLOCK, np.random.default_rng(3))
    logits = network(batch.ids, batch.positions, batch.mask)
    for row in range(4):
        for place in sorted({place % batch.ids.shape[1] for place in batch.wanted.tolist() if place // batch.ids.shape[1] == row})[::3]:
            seen = batch.mask[row, place].nonzero().ravel()
            inner = batch.mask[row][seen][:, seen]
            alone = network(batch.ids[row, seen][None], batch.positions[row, seen][None], inner[None])
            at = seen.tolist().index(place)
            torch.testing.assert_close(alone[0, at], logits[row, place], atol=1e-5, rtol=1e-5)


def test_samples_are_those_of_the_step_alone(tokenizer):
    forth, back = Samples(tokenizer, "s", 4), Samples(tokenizer, "s", 4)
    wanted = [20, 3, 17, 0]
    found = {step: forth.of_step(step) for step in sorted(wanted)}
    for step in wanted:
        for one, other in zip(back.of_step(step), found[step], strict=True):
            assert (one.ids == other.ids).all()
    assert any(len(one.ids) != len(other.ids) for one, other in zip(found[0], Samples(tokenizer, "t", 4).of_step(0), strict=True))
    assert PAD not in found[0][0].ids
