"""Records diffusers' schedulers for libs/diffusion/src/schedulers/schedulers.test.ts, one fixture file per scheduler.

    pip install torch==2.15.0 diffusers==0.42.1 numpy==2.4.6 scipy
    python tools/reference/record-schedulers.py

Recorded with Python 3.11 on the CPU. A case is a scheduler config as a model would ship it, a number of steps and a
seed. The model is a formula, so that the TypeScript side can compute it, too: see fake_model. First latents and
ancestral noise are torch.randn from one generator. Recorded: timesteps, init_noise_sigma, and after every step the
sample and the x0 estimate; for further numbers of steps the timesteps alone.
"""

import json
import pathlib

import diffusers
import numpy as np
import torch
from diffusers import (
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "libs/diffusion/src/schedulers/__fixtures__"
SEED = 7
STEPS = [1, 2, 4, 10, 20, 25]
# Recorded for their timesteps alone: 16, 48 and 80 put timesteps half-way between whole numbers.
GRID_STEPS = [3, 7, 16, 30, 48, 50, 80]

# What Stable Diffusion 1.5 ships, less the fields the cases vary.
BASE = {
    "num_train_timesteps": 1000,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "steps_offset": 1,
    "set_alpha_to_one": False,
    "clip_sample": False,
}
EMOJI = json.loads((ROOT / "models/emoji-sd/scheduler/scheduler_config.json").read_text())
PNDM = {"_class_name": "PNDMScheduler", **BASE, "skip_prk_steps": True, "trained_betas": None}
COSINE = {"beta_schedule": "squaredcos_cap_v2", "timestep_spacing": "trailing"}
ZERO_SNR = {**BASE, "prediction_type": "v_prediction", "rescale_betas_zero_snr": True, "timestep_spacing": "trailing"}
TRAINED = {"num_train_timesteps": 12, "trained_betas": [0.02 * (i + 1) for i in range(12)], "clip_sample": False}
SIGMA_MIN = {**BASE, "final_sigmas_type": "sigma_min"}

SHARED = [(EMOJI, 10), (PNDM, 10), ({}, 5), ({**BASE, **COSINE}, 6), (ZERO_SNR, 6), (TRAINED, 4), (TRAINED, 10)]
SAMPLE = [({**BASE, "prediction_type": "sample", "timestep_spacing": "trailing"}, 6)]
LINEAR_END = [
    (SIGMA_MIN, 6),
    (SIGMA_MIN, 16),
    ({**SIGMA_MIN, "lower_order_final": False}, 6),
    ({**SIGMA_MIN, "euler_at_final": True}, 16),
    ({**BASE, "lower_order_final": False}, 6),
    ({**BASE, **COSINE, "lambda_min_clipped": -5.1}, 10),
    ({**BASE, **COSINE, "lambda_min_clipped": -5.1, "timestep_spacing": "linspace"}, 10),
    ({**BASE, **COSINE, "lambda_min_clipped": -5.1, "timestep_spacing": "leading"}, 10),
]

SCHEDULERS = {
    "ddim": (DDIMScheduler, {}, SAMPLE + [({**BASE, "clip_sample": True, "clip_sample_range": 1.2}, 6)]),
    "euler": (EulerDiscreteScheduler, {}, SAMPLE + [
        (SIGMA_MIN, 6),
        ({**BASE, "use_karras_sigmas": True}, 10),
        ({**BASE, "use_karras_sigmas": True, "timestep_spacing": "leading"}, 10),
    ]),
    # diffusers has no prediction_type "sample" here.
    "euler_ancestral": (EulerAncestralDiscreteScheduler, {}, []),
    "dpmpp_2m": (DPMSolverMultistepScheduler, {"use_karras_sigmas": False}, SAMPLE + LINEAR_END),
    "dpmpp_2m_karras": (DPMSolverMultistepScheduler, {"use_karras_sigmas": True}, SAMPLE + LINEAR_END[:5]),
}


def fake_model(scaled, timestep):
    """0.3 x + 0.5 sin(i + t / 100), in double, rounded to float32."""
    index = np.arange(scaled.numel(), dtype=np.float64)
    output = 0.3 * scaled.numpy().astype(np.float64) + 0.5 * np.sin(index + float(timestep) / 100)
    return torch.from_numpy(output.astype(np.float32))


def shortest(values):
    """The shortest decimals that are these float32 values again."""
    return [float(str(np.float32(v))) for v in values]


def record(name, scheduler_class, overrides, config, steps):
    # Ancestral noise as production draws it, in blocks of 16; else 8 values say as much in half the space.
    length = 16 if name == "euler_ancestral" else 8
    scheduler = scheduler_class.from_config(dict(config), **overrides)
    scheduler.set_timesteps(steps)
    if scheduler_class is not DDIMScheduler:
        # Else the first step is looked up by its timestep, and where rounding makes the first two equal (Karras sigmas
        # with zero terminal SNR) diffusers takes the second and runs off the end.
        scheduler.set_begin_index(0)
    generator = torch.Generator("cpu").manual_seed(SEED)
    sample = torch.randn((1, length), generator=generator) * scheduler.init_noise_sigma
    options = {"generator": generator} if name == "euler_ancestral" else {}
    samples, originals = [], []
    for timestep in scheduler.timesteps:
        scaled = scheduler.scale_model_input(sample, timestep)
        output = fake_model(scaled.flatten(), timestep).reshape(sample.shape)
        result = scheduler.step(output, timestep, sample, **options)
        sample = result.prev_sample
        is_dpm = scheduler_class is DPMSolverMultistepScheduler
        original = scheduler.model_outputs[-1] if is_dpm else result.pred_original_sample
        assert torch.isfinite(sample).all() and torch.isfinite(original).all(), (name, config, steps)
        samples.append(shortest(sample.flatten().tolist()))
        originals.append(shortest(original.flatten().tolist()))
    return {
        # The class only says how the file is read; the test makes the scheduler it is about.
        "config": {"_class_name": scheduler_class.__name__, **config},
        "steps": steps,
        "seed": SEED,
        "length": length,
        "timesteps": shortest(scheduler.timesteps.tolist()),
        "initNoiseSigma": float(scheduler.init_noise_sigma),
        "samples": samples,
        "predictedOriginals": originals,
    }


for name, (scheduler_class, overrides, own) in SCHEDULERS.items():
    # Karras sigmas take the place of the spacing in DPM-Solver.
    spacings = ["linspace"] if name == "dpmpp_2m_karras" else ["leading", "trailing", "linspace"]
    grid = [
        ({**BASE, "prediction_type": prediction, "timestep_spacing": spacing}, steps)
        for prediction in ("epsilon", "v_prediction")
        for spacing in spacings
        for steps in STEPS
    ]
    cases = [record(name, scheduler_class, overrides, config, steps) for config, steps in grid + SHARED + own]
    grids = []
    for spacing in spacings:
        for steps in GRID_STEPS:
            config = {**BASE, "timestep_spacing": spacing}
            scheduler = scheduler_class.from_config(config, **overrides)
            scheduler.set_timesteps(steps)
            config["_class_name"] = scheduler_class.__name__
            grids.append({"config": config, "steps": steps, "timesteps": shortest(scheduler.timesteps.tolist())})
    versions = json.dumps({"torch": torch.__version__, "diffusers": diffusers.__version__})
    lines, grid_lines = (
        ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows) for rows in (cases, grids)
    )
    TARGET.mkdir(parents=True, exist_ok=True)
    text = f'{{"versions": {versions}, "cases": [\n{lines}\n], "grids": [\n{grid_lines}\n]}}\n'
    (TARGET / f"{name.replace('_', '-')}.json").write_text(text)
    print(name, len(cases), "cases")
