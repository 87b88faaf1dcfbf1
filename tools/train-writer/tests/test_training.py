import numpy as np
import pytest
import torch

from train_writer.batches import Samples, causal_batch, diffusion_batch
from train_writer.model import Network, Shape
from train_writer.muon import orthogonalize
from train_writer.training import Schedule, train

SCHEDULE = Schedule(steps=6, rate=4e-3, warmup=2, fall=3)


def batches(tokenizer, kind):
    samples = Samples(tokenizer, kind, 4)
    if kind == "causal":
        return lambda step: causal_batch(samples.of_step(step))
    return lambda step: diffusion_batch(samples.of_step(step), 8, np.random.default_rng([0, step]))


def begin():
    torch.manual_seed(1)
    return Network(Shape(vocabulary=1024, width=64, layers=1, heads=2, hidden=64))


@pytest.mark.parametrize("kind", ["causal", "diffusion"])
def test_an_interrupted_training_ends_in_the_same_weights(tokenizer, tmp_path, kind):
    whole = train(begin(), batches(tokenizer, kind), SCHEDULE, tmp_path / "whole")
    for stop in (2, 1):
        assert train(begin(), batches(tokenizer, kind), SCHEDULE, tmp_path / "parts", stop_after=stop) is None
    parts = train(begin(), batches(tokenizer, kind), SCHEDULE, tmp_path / "parts")
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, parts.state_dict()[name]), name


def test_training_makes_the_loss_smaller(tokenizer, tmp_path, capsys):
    schedule = Schedule(steps=40, rate=4e-3, warmup=5)
    batch = batches(tokenizer, "causal")(0)
    train(begin(), lambda step: batch, schedule, tmp_path / "loss", stop_after=1)
    train(begin(), lambda step: batch, schedule, tmp_path / "loss")
    lines = [line for line in capsys.readouterr().out.splitlines() if "loss" in line]
    first, last = (float(line.split("loss ")[1].split(",")[0]) for line in (lines[0], lines[-1]))
    assert last < 0.7 * first


def test_the_rate_rises_holds_and_falls_to_nothing():
    schedule = Schedule(steps=100, rate=1.0, warmup=10, fall=70)
    assert schedule.rate_at(0) == pytest.approx(0.1)
    assert schedule.rate_at(20) == 1
    assert schedule.rate_at(65) == pytest.approx(0.5)
    assert Schedule(steps=100, rate=1.0, warmup=10).rate_at(99) == 1
    assert schedule.rate_at(99) < 0.02


def test_orthogonalized_matrices_have_singular_values_near_one():
    torch.manual_seed(0)
    for shape in ((192, 32), (32, 96)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape)))
        assert values.min() > 0.4
        assert values.max() < 1.4
