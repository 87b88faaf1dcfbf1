#!/usr/bin/env python3
"""Judges a model by its ONNX files: `python evaluate.py [directory]`. See README.md."""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
_HERE = Path(__file__).resolve().parent
sys.path += [str(_HERE.parent / "train-emoji"), str(_HERE.parent / "train-writer")]

from train_emoji.pictures import render_sprites  # noqa: E402
from train_emoji.things import all_things  # noqa: E402

from train_reader.evaluation import judge_model  # noqa: E402


def main() -> None:
    """Prints the figures."""
    models = _HERE.parents[1] / "models"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=models / "emoji-reader", help="the model's directory")
    parser.add_argument("--painter", type=Path, default=models / "emoji-sd", help="generates the images of one part")
    parser.add_argument("--count", type=int, default=218, help="generated images")
    options = parser.parse_args()
    things = all_things()
    judge_model(options.model, options.painter, things, render_sprites(things), options.count)


if __name__ == "__main__":
    main()
