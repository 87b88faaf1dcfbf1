#!/usr/bin/env python3
"""Judges models by their ONNX files: `python evaluate.py [directory …]`. See README.md."""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from train_writer.evaluation import judge_model, missed
from train_writer.recipe import Recipe


def main() -> None:
    """Prints the figures."""
    options = _parse_options()
    found = {}
    for directory in options.models:
        for weights in options.weights or _weights_in(directory):
            figures = judge_model(directory, weights, options.count, options.wishes, options.threads)
            found[f"{directory.name} {weights}"] = figures
            if options.missed:
                print(*(f"  {wish} → {answer}" for wish, answer in missed(directory, weights, options.wishes)), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def _weights_in(directory: Path) -> list[str]:
    files = {"fp32": "model.onnx", "int8": "model_int8.onnx"}
    return [weights for weights, file in files.items() if (directory / "onnx" / file).exists()]


def _parse_options() -> argparse.Namespace:
    models = Path(__file__).resolve().parents[2] / "models"
    embedded = [models / "emoji-writer", models / "emoji-writer-diffusion"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("models", type=Path, nargs="*", default=embedded, help="directories of models")
    parser.add_argument("--weights", nargs="*", choices=("fp32", "int8"), help="which of them; all that are there")
    parser.add_argument("--count", type=int, default=Recipe().evaluated, help="cases of each generated hold-out")
    parser.add_argument("--wishes", type=Path, help="a file of wishes in the form of free-wishes.txt to judge besides")
    parser.add_argument("--missed", action="store_true", help="list the free wishes (or those of --wishes) that were missed")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--threads", type=int, default=1, help="of onnxruntime")
    return parser.parse_args()


if __name__ == "__main__":
    main()
