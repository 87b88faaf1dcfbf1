"""The stages of a run, one after the other. What a stage has made stays in the run's folder and is not made again."""

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from train_writer.batches import Batch, Samples, causal_batch, diffusion_batch
from train_writer.model import Network
from train_writer.placing import place_tokens
from train_writer.recipe import Recipe
from train_writer.tokenizer import train_tokenizer
from train_writer.training import Schedule, train

STAGES = ("tokenizer", "base", "writer", "diffusion", "export", "evaluate")

WRITER, DIFFUSION = "emoji-writer", "emoji-writer-diffusion"
"""The folders, in the run's, of the finished models."""


class Run:
    """A run's folder and what its stages need of each other."""

    def __init__(self, out: Path, recipe: Recipe, stop_after: int | None = None) -> None:
        self._out, self._recipe, self._stop_after = out, recipe, stop_after

    def run_stages(self, names: tuple[str, ...] = STAGES) -> bool:
        """Runs what is left of these. False: it was stopped (in tests)."""
        make = {
            "tokenizer": self._make_tokenizer,
            "base": lambda result: self._train("base", None, self._recipe.base_steps, result),
            "writer": lambda result: self._train("writer", "base", self._recipe.writer_steps, result),
            "diffusion": lambda result: self._train("diffusion", "base", self._recipe.diffusion_steps, result),
            "export": self._export,
            "evaluate": self._evaluate,
        }
        results = {"tokenizer": "tokenizer.json", "export": DIFFUSION, "evaluate": "figures.json"}
        for name in names:
            result = self._out / results.get(name, f"{name}.pt")
            if result.exists():
                print(f"{name}: already made", flush=True)
            elif not make[name](result):
                return False
        return True

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(str(self._out / "tokenizer.json"))

    def _make_tokenizer(self, result: Path) -> bool:
        tokenizer = train_tokenizer(self._recipe.vocabulary, self._recipe.tokenizer_chats, self._recipe.seed)
        partial = result.with_suffix(".partial")
        tokenizer.save(str(partial))
        partial.rename(result)
        return True

    def _load(self, stage: str) -> Network:
        network = Network(self._recipe.shape())
        network.load_state_dict(torch.load(self._out / f"{stage}.pt", weights_only=True))
        return network

    def _train(self, stage: str, begin: str | None, steps: int, result: Path) -> bool:
        torch.manual_seed(self._recipe.seed)
        network = self._load(begin) if begin else self._begin()
        # The base is no end: its rate stays where it is.
        schedule = Schedule(steps, self._recipe.rate, fall=self._recipe.fall_steps if begin else 0)
        trained = train(network, self._batches(stage), schedule, self._out / f"{stage}.checkpoint", self._stop_after)
        if trained is None:
            return False
        partial = result.with_suffix(".partial")
        torch.save(trained.state_dict(), partial)
        partial.rename(result)
        (self._out / f"{stage}.checkpoint").unlink(missing_ok=True)
        return True

    def _begin(self) -> Network:
        network = Network(self._recipe.shape())
        with torch.no_grad():
            network.embedding.weight.copy_(place_tokens(self._tokenizer, *network.embedding.weight.shape, self._recipe.seed))
        return network

    def _batches(self, stage: str) -> Callable[[int], Batch]:
        samples = Samples(self._tokenizer, f"{self._recipe.seed} {stage}", self._recipe.batch)
        if stage != "diffusion":
            return lambda step: causal_batch(samples.of_step(step))
        seed = self._recipe.seed
        return lambda step: diffusion_batch(samples.of_step(step), self._recipe.block, np.random.default_rng([seed, step]))

    def _export(self, result: Path) -> bool:
        from train_writer.export import export_model  # noqa: PLC0415 - no ONNX is needed to train

        for name, stage in ((WRITER, "writer"), (DIFFUSION, "diffusion")):
            export_model(self._out / name, self._load(stage), self._tokenizer, self._recipe, is_causal=name == WRITER)
        return result.exists()

    def _evaluate(self, result: Path) -> bool:
        from train_writer.evaluation import judge_model  # noqa: PLC0415

        figures = {
            f"{name} {weights}": judge_model(self._out / name, weights, self._recipe.evaluated)
            for name in (WRITER, DIFFUSION)
            for weights in ("fp32", "int8")
        }
        result.write_text(json.dumps(figures, indent=2) + "\n")
        return True
