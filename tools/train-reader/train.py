#!/usr/bin/env python3
"""Makes the embedded vision-language model from nothing: `python train.py`. See README.md."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
_HERE = Path(__file__).resolve().parent
sys.path += [str(_HERE.parent / "train-emoji"), str(_HERE.parent / "train-writer")]

import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from train_emoji.pictures import render_sprites  # noqa: E402
from train_emoji.things import all_things  # noqa: E402
from train_writer.training import Schedule, train  # noqa: E402

from train_reader.batches import Batches  # noqa: E402
from train_reader.export import export_model  # noqa: E402
from train_reader.model import Reader  # noqa: E402
from train_reader.recipe import PRESETS, Recipe  # noqa: E402
from train_reader.tokenizer import train_tokenizer  # noqa: E402


def main() -> None:
    """Trains, or goes on; then exports."""
    options = _parse_options()
    torch.set_num_threads(options.threads)
    recipe = PRESETS[options.preset]
    if options.steps is not None:
        recipe = replace(recipe, steps=options.steps)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(options.out / "tokenizer.json", recipe)
    reader = _train(options.out, recipe, tokenizer)
    export_model(options.out / "emoji-reader", reader, tokenizer, recipe)


def _tokenizer(path: Path, recipe: Recipe) -> Tokenizer:
    if not path.exists():
        train_tokenizer(recipe.vocabulary, all_things(), recipe.seed).save(str(path))
    return Tokenizer.from_file(str(path))


def _train(out: Path, recipe: Recipe, tokenizer: Tokenizer) -> Reader:
    trained = out / "reader.pt"
    torch.manual_seed(recipe.seed)
    reader = Reader(recipe.vision, recipe.text)
    if trained.exists():
        reader.load_state_dict(torch.load(trained, weights_only=True))
        return reader.eval()
    things = all_things()
    batches = Batches(tokenizer, things, render_sprites(things), seed=recipe.seed, rows=recipe.rows, patches=recipe.vision.patches)
    schedule = Schedule(recipe.steps, recipe.rate, fall=recipe.fall_steps)
    averaged = train(reader, batches.batch_of, schedule, out / "reader.checkpoint")
    torch.save(averaged.state_dict(), trained)
    return averaged


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--out", type=Path, default=_HERE / "run", help="the run's folder; a run in it is gone on with")
    parser.add_argument("--preset", choices=[*PRESETS], default="reader", help="the recipe")
    parser.add_argument("--steps", type=int, help="of training, in place of the recipe's")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU; another number, other rounding")
    return parser.parse_args()


if __name__ == "__main__":
    main()
