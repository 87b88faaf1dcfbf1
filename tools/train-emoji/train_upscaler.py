#!/usr/bin/env python3
"""Makes the embedded model's upscaler from nothing: `python train_upscaler.py`. See README.md."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch

from train_emoji.pictures import render_sprites
from train_emoji.things import all_things
from train_emoji.training import Conditions, run_stage
from train_emoji.upscaler import (
    SCALE,
    UpscalerTraining,
    Vae,
    export_upscaler,
    held_out_scenes,
    judge_upscaler,
    make_pairs,
    training_scenes,
)

_SEED = 0


def main() -> None:
    """Trains, exports and judges. Interrupted, the same command goes on."""
    options = _parse_options()
    torch.set_num_threads(options.threads)
    things = all_things()
    sprites, larger = render_sprites(things), render_sprites(things, SCALE)
    vae = Vae(options.model, options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    scenes = training_scenes(options.pictures, things, _SEED)
    halves = [make_pairs(scenes[at::2], sprites, larger, kind) for at, kind in enumerate((vae, None))]
    pairs = (np.concatenate([half[0] for half in halves]), np.concatenate([half[1] for half in halves]))
    print(f"upscaler: {len(pairs[0])} pairs of pictures", flush=True)
    stage = UpscalerTraining(pairs, options.steps, _SEED)
    checkpoint = options.out / "upscaler.checkpoint"
    modules = run_stage(stage, checkpoint, Conditions())
    if modules is None:
        return
    folder = options.out / f"upscaler_x{SCALE}"
    export_upscaler(modules["upscaler"], folder)
    held_out = held_out_scenes(things, _SEED)
    figures = {}
    for name, kind in {"through the VAE": vae, "as drawn": None}.items():
        judged = make_pairs(held_out, sprites, larger, kind)
        figures[name] = judge_upscaler(folder / "model.onnx", judged, options.threads)
        psnr, bicubic = figures[name]["upscaler"], figures[name]["bicubic"]
        print(f"PSNR of {len(held_out)} held-out pictures {name}: {psnr:.2f} dB, bicubic {bicubic:.2f} dB", flush=True)
    (options.out / "metrics.json").write_text(json.dumps(figures, indent=2) + "\n")
    checkpoint.unlink(missing_ok=True)


def _parse_options() -> argparse.Namespace:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=Path, default=here.parents[1] / "models/emoji-sd", help="whose VAE is used")
    parser.add_argument("--out", type=Path, default=here / "run-upscaler", help="the run's folder")
    parser.add_argument("--pictures", type=int, default=218, help="that it is trained on: one of each thing")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    main()
