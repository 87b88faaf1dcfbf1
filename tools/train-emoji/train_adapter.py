#!/usr/bin/env python3
"""Trains an adapter (LoRA) for the embedded model: `python train_adapter.py pixels`. See README.md."""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from train_emoji.adapter import STYLES, AdapterRecipe, train_adapter


def main() -> None:
    """Writes models/emoji-sd/loras/<style>.safetensors."""
    embedded = Path(__file__).resolve().parents[2] / "models/emoji-sd"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("style", choices=STYLES)
    parser.add_argument("--model", type=Path, default=embedded, help="a directory with the embedded model's layout")
    parser.add_argument("--pictures", type=int, default=AdapterRecipe.pictures, help="that it learns from")
    parser.add_argument("--steps", type=int, default=AdapterRecipe.steps, help="of 16 pictures")
    parser.add_argument("--rank", type=int, default=AdapterRecipe.rank)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=AdapterRecipe.seed)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe = AdapterRecipe(options.style, options.pictures, options.steps, options.rank, options.seed)
    adapter = train_adapter(options.model, recipe, options.threads)
    file = options.model / "loras" / f"{options.style}.safetensors"
    adapter.save(file, {"description": f"tools/train-emoji/train_adapter.py {options.style}"})
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
