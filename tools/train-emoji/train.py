#!/usr/bin/env python3
"""Makes the embedded model from nothing: `python train.py`. See README.md."""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from transformers.utils.logging import disable_progress_bar

from train_emoji.recipe import PRESETS, change_recipe, keep_recipe
from train_emoji.stages import STAGES, Run
from train_emoji.training import Conditions


def main() -> int:
    """Runs the stages that are left. 0: done; 75 (EX_TEMPFAIL): time was up, run the same again."""
    options = _parse_options()
    disable_progress_bar()
    torch.set_num_threads(options.threads)
    recipe = change_recipe(PRESETS[options.preset], options.set)
    keep_recipe(options.out, recipe)
    deadline = time.monotonic() + 60 * options.minutes
    conditions = Conditions(device=options.device, workers=options.workers, deadline=deadline)
    return 0 if Run(options.out, recipe, conditions, options.threads).run_stages(options.until) else 75


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument("--out", type=Path, default=here / "run", help="the run's folder; a run in it is gone on with")
    parser.add_argument("--preset", choices=[*PRESETS], default="emoji", help="the recipe to start from")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="changes of the recipe (recipe.py)")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1], help="the last stage to run")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop at a checkpoint after so long")
    parser.add_argument("--device", default="cpu", help="where to train: cpu or cuda")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of the CPU; another number, other rounding"
    )
    parser.add_argument("--workers", type=int, default=0, help="processes that prepare data beside the one that trains")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
