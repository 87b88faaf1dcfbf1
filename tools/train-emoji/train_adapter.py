#!/usr/bin/env python3
"""Trains an adapter (LoRA) for the embedded model: `python train_adapter.py pixels`. See README.md."""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from train_emoji.adapter import STYLES, train_adapter


def main() -> None:
    """Writes models/emoji-sd/loras/<style>.safetensors."""
    embedded = Path(__file__).resolve().parents[2] / "models/emoji-sd"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("style", choices=STYLES)
    parser.add_argument("--model", type=Path, default=embedded, help="a directory with the embedded model's layout")
    parser.add_argument("--pictures", type=int, default=480, help="that it learns from")
    parser.add_argument("--steps", type=int, default=500, help="of 16 pictures")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numbers = {name: getattr(options, name) for name in ("pictures", "steps", "rank", "threads", "seed")}
    adapter = train_adapter(options.model, options.style, **numbers)
    file = options.model / "loras" / f"{options.style}.safetensors"
    adapter.save(file, {"description": f"tools/train-emoji/train_adapter.py {options.style}"})
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
