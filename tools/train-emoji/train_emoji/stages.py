"""The stages of a run, one after the other. What a stage has made stays in the run's folder and is not made again."""

import json
import shutil
from functools import cached_property
from pathlib import Path

from diffusers import AutoencoderKL, UNet2DConditionModel
from torch import nn
from transformers import CLIPTextModel

from train_emoji.diffusion import DiffusionTraining
from train_emoji.latents import Latents, cache_latents, read_facts
from train_emoji.models import Networks
from train_emoji.pictures import Sprites, render_sprites
from train_emoji.recipe import Recipe
from train_emoji.text_warmup import TextWarmup
from train_emoji.things import Thing, all_things
from train_emoji.tokenizer import PromptTokenizer, count_words, learn_merges, write_tokenizer
from train_emoji.training import Conditions, Stage, run_stage
from train_emoji.vae import DecoderTraining, VaeTraining

STAGES = ("tokenizer", "text-warmup", "vae", "latents", "diffusion", "decoder", "export", "evaluate")

MODEL = "emoji-sd"
"""The folder, in the run's, of the finished model."""


class Run:
    """A run's folder and what its stages need of each other."""

    def __init__(self, out: Path, recipe: Recipe, conditions: Conditions, threads: int) -> None:
        self._out, self._recipe, self._conditions, self._threads = out, recipe, conditions, threads

    def run_stages(self, until: str) -> bool:
        """Runs what is left, up to a stage and with it. False: the deadline came first, run the same again."""
        results = {
            "tokenizer": ("tokenizer", self._make_tokenizer),
            "text-warmup": ("text-warmup", self._warm_text_up),
            "vae": ("vae", self._train_vae),
            "latents": ("latents/facts.json", self._cache_latents),
            "diffusion": ("diffusion", self._train_diffusion),
            "decoder": ("decoder", self._train_decoder),
            "export": (MODEL, self._export),
            "evaluate": (f"{MODEL}/metrics.json", self._evaluate),
        }
        for name in STAGES[: STAGES.index(until) + 1]:
            result, make = results[name]
            if (self._out / result).exists():
                print(f"{name}: already made", flush=True)
            elif not make(self._out / result):
                print(f"{name}: time is up; the same command goes on from here", flush=True)
                return False
        return True

    @cached_property
    def _things(self) -> tuple[Thing, ...]:
        return all_things()[: self._recipe.things]

    @cached_property
    def _sprites(self) -> Sprites:
        return render_sprites(self._things)

    @cached_property
    def _tokenizer(self) -> PromptTokenizer:
        return PromptTokenizer(self._out / "tokenizer")

    def _make_tokenizer(self, result: Path) -> bool:
        partial = _empty(result)
        words = count_words(self._things, self._recipe.tokenizer_captions)
        merges = learn_merges(words)
        write_tokenizer(partial, merges)
        partial.rename(result)
        print(f"tokenizer: {len(words)} words, {len(merges)} merges, {self._tokenizer.size} tokens", flush=True)
        return True

    def _warm_text_up(self, result: Path) -> bool:
        stage = TextWarmup(self._recipe, self._things, self._sprites, self._tokenizer)
        return self._train(stage, result, ["text_encoder"])

    def _train_vae(self, result: Path) -> bool:
        return self._train(VaeTraining(self._recipe, self._sprites), result, ["vae"])

    def _cache_latents(self, result: Path) -> bool:
        cache_latents(result.parent, self._recipe, self._sprites, self._load_vae("vae"), self._conditions.device)
        return True

    def _train_diffusion(self, result: Path) -> bool:
        directory = self._out / "latents"
        if not (directory / "latents.pt").exists():  # the run has traveled, see travel.py
            self._cache_latents(directory / "facts.json")
        text_encoder = CLIPTextModel.from_pretrained(self._out / "text-warmup/text_encoder")
        stage = DiffusionTraining(self._recipe, self._things, Latents(directory), self._tokenizer, text_encoder)
        return self._train(stage, result, ["unet", "text_encoder"])

    def _train_decoder(self, result: Path) -> bool:
        return self._train(DecoderTraining(self._recipe, self._sprites, self._load_vae("vae")), result, ["vae"])

    def _export(self, result: Path) -> bool:
        # Here and below, and not above: the stages before go without ONNX on a machine that has no ONNX.
        from train_emoji.export import export_model  # noqa: PLC0415

        partial = _empty(result)
        export_model(
            partial,
            self._out / "tokenizer",
            read_facts(self._out / "latents"),
            Networks(
                CLIPTextModel.from_pretrained(self._out / "diffusion/text_encoder"),
                UNet2DConditionModel.from_pretrained(self._out / "diffusion/unet", low_cpu_mem_usage=False),
                self._load_vae("decoder"),
            ),
        )
        partial.rename(result)
        return True

    def _evaluate(self, result: Path) -> bool:
        from train_emoji.judge import judge_model  # noqa: PLC0415

        figures = judge_model(self._out / MODEL, things=self._recipe.things, threads=self._threads)
        result.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
        return True

    def _load_vae(self, stage: str) -> AutoencoderKL:
        return AutoencoderKL.from_pretrained(self._out / stage / "vae", low_cpu_mem_usage=False)

    def _train(self, stage: Stage, result: Path, names: list[str]) -> bool:
        """Trains and writes the named modules, each into a folder of its own."""
        _print_size(stage, names)
        checkpoint = self._out / f"{stage.name}.checkpoint"
        modules = run_stage(stage, checkpoint, self._conditions)
        if modules is None:
            return False
        partial = _empty(result)
        for name in names:
            modules[name].save_pretrained(partial / name)
        partial.rename(result)
        checkpoint.unlink(missing_ok=True)
        return True


def _empty(result: Path) -> Path:
    """An empty folder beside the result, to be renamed when it is whole."""
    partial = result.with_name(f"{result.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    return partial


def _print_size(stage: Stage, names: list[str]) -> None:
    sizes = (f"{name} {_count(stage.modules[name]) / 1e6:.2f} M" for name in names)
    print(f"{stage.name}: {stage.steps} steps, parameters: {', '.join(sizes)}", flush=True)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
