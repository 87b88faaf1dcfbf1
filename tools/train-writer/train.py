#!/usr/bin/env python3
"""Makes both embedded text models from nothing: `python train.py`. See README.md."""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from train_writer.recipe import PRESETS, change_recipe, keep_recipe
from train_writer.stages import STAGES, Run


def main() -> int:
    """Runs the stages that are left."""
    options = _parse_options()
    torch.set_num_threads(options.threads)
    recipe = change_recipe(PRESETS[options.preset], options.set)
    keep_recipe(options.out, recipe)
    return 0 if Run(options.out, recipe).run_stages(tuple(options.stages)) else 1


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument("--out", type=Path, default=here / "run", help="the run's folder; a run in it is gone on with")
    parser.add_argument("--preset", choices=[*PRESETS], default="writer", help="the recipe to start from")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="changes of the recipe (recipe.py)")
    parser.add_argument("--stages", nargs="*", choices=STAGES, default=STAGES, help="only these; writer and diffusion may run at once")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU; another number, other rounding")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
