#!/usr/bin/env python3
"""Judges a model's directory by its ONNX files: `python evaluate.py [../../models/emoji-sd]`. See README.md."""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from train_emoji.evaluation import Sampling
from train_emoji.judge import judge_model


def main() -> None:
    """Prints the figures."""
    embedded = Path(__file__).resolve().parents[2] / "models/emoji-sd"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument(
        "model", type=Path, nargs="?", default=embedded, help="a directory in the diffusers ONNX layout"
    )
    parser.add_argument("--pairs", type=int, help="look at so many held-out pairs only, spread over all 218")
    parser.add_argument("--steps", type=int, default=Sampling.steps)
    parser.add_argument("--guidance", type=float, default=Sampling.guidance)
    parser.add_argument("--seed", type=int, default=Sampling.seed)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    sampling = Sampling(options.steps, options.guidance, options.seed)
    judge_model(options.model, pairs=options.pairs, threads=options.threads, sampling=sampling)


if __name__ == "__main__":
    main()
