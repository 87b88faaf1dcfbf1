"""Records diffusers' schedulers for libs/diffusion/src/schedulers/schedulers.test.ts, one file of vectors per scheduler.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 numpy==2.4.6 scipy==1.17.1
    python tools/golden/record-schedulers.py

Recorded with Python 3.11 on the CPU. A case is a scheduler config as a model would ship it and a number of steps. The
model is a formula, so that the TypeScript side can compute it, too: see fake_model. First latents and the noise of the
steps are given in "noise", block by block. Recorded: timesteps, init_noise_sigma, and after every step the sample and the
x0 estimate (of pndm and the flow scheduler, which keep none, the one that the model's output means by itself); for further
numbers of steps the timesteps alone. Arrays are base64 of little-endian float32. Beside them: quantiles of the beta
distribution by scipy, and the shifts that the pipelines of SD3 and CogView4 derive from an image's size.
"""

import base64
import json
import pathlib

import diffusers
import numpy as np
import scipy.stats
import torch
from diffusers import (
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    LCMScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
)
from diffusers.pipelines.cogview4.pipeline_cogview4 import calculate_shift as cogview4_shift
from diffusers.pipelines.stable_diffusion_3.pipeline_stable_diffusion_3 import calculate_shift as sd3_shift

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "tools/golden/vectors"
SEED = 7
SHAPE = (1, 4, 2, 2)
# Recorded for their timesteps alone: 16, 48 and 80 put timesteps half-way between whole numbers.
GRID_STEPS = [3, 7, 16, 30, 48, 50, 80]
VERSIONS = {
    "torch": torch.__version__,
    "diffusers": diffusers.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
}

# What Stable Diffusion 1.5 ships, less the fields the cases vary.
BASE = {
    "num_train_timesteps": 1000,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "steps_offset": 1,
    "set_alpha_to_one": False,
    "clip_sample": False,
    "skip_prk_steps": True,
}
EMOJI = json.loads((ROOT / "models/emoji-sd/scheduler/scheduler_config.json").read_text())
COSINE = {"beta_schedule": "squaredcos_cap_v2", "timestep_spacing": "trailing"}
ZERO_SNR = {**BASE, "prediction_type": "v_prediction", "rescale_betas_zero_snr": True, "timestep_spacing": "trailing"}
TRAINED = {"num_train_timesteps": 12, "trained_betas": [0.02 * (i + 1) for i in range(12)], "clip_sample": False}
SIGMA_MIN = {**BASE, "final_sigmas_type": "sigma_min"}
THRESHOLD = {**BASE, "thresholding": True, "dynamic_thresholding_ratio": 0.9, "sample_max_value": 1.5}

# The files that the families publish, field by field.
SD15 = {"_class_name": "PNDMScheduler", **BASE, "trained_betas": None}
SD21 = {"_class_name": "DDIMScheduler", **BASE, "prediction_type": "v_prediction", "trained_betas": None}
SDXL = {
    **{"_class_name": "EulerDiscreteScheduler", "_diffusers_version": "0.19.0.dev0", **BASE},
    **{"interpolation_type": "linear", "prediction_type": "epsilon", "sample_max_value": 1.0},
    **{"timestep_spacing": "leading", "trained_betas": None, "use_karras_sigmas": False},
}
SD_TURBO = {**SDXL, "timestep_spacing": "trailing", "sigma_max": None, "sigma_min": None, "timestep_type": "discrete"}
SDXL_TURBO = {**SDXL, "_class_name": "EulerAncestralDiscreteScheduler", "timestep_spacing": "trailing"}
LCM = {
    **{"_class_name": "LCMScheduler", "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"},
    **{"clip_sample": False, "clip_sample_range": 1.0, "dynamic_thresholding_ratio": 0.995},
    **{"num_train_timesteps": 1000, "original_inference_steps": 50, "prediction_type": "epsilon"},
    **{"rescale_betas_zero_snr": False, "sample_max_value": 1.0, "set_alpha_to_one": True, "steps_offset": 1},
    **{"thresholding": False, "timestep_scaling": 10.0, "timestep_spacing": "leading", "trained_betas": None},
}
SD3 = {"_class_name": "FlowMatchEulerDiscreteScheduler", "num_train_timesteps": 1000, "shift": 3.0}
SD35 = {
    **{**SD3, "base_image_seq_len": 256, "base_shift": 0.5, "max_image_seq_len": 4096, "max_shift": 1.15},
    **{"invert_sigmas": False, "shift_terminal": None, "time_shift_type": "exponential"},
    **{"use_beta_sigmas": False, "use_exponential_sigmas": False, "use_karras_sigmas": False},
    **{"stochastic_sampling": False, "use_dynamic_shifting": False},
}
COGVIEW4 = {**SD35, "base_shift": 0.25, "max_shift": 0.75, "shift": 1.0, "time_shift_type": "linear"}
COGVIEW4["use_dynamic_shifting"] = True
DYNAMIC = {**SD35, "use_dynamic_shifting": True}
# As UniPCMultistepScheduler.save_pretrained writes it for a flow model.
UNIPC_FLOW = {
    **{"_class_name": "UniPCMultistepScheduler", "use_flow_sigmas": True, "prediction_type": "flow_prediction"},
    **{"flow_shift": 3.0, "solver_order": 2, "solver_type": "bh2", "predict_x0": True, "disable_corrector": []},
    **{"solver_p": None, "final_sigmas_type": "zero", "lower_order_final": True, "timestep_spacing": "linspace"},
}


def all_of(prediction, spacings, all_steps):
    return [
        ({**BASE, "prediction_type": prediction, "timestep_spacing": spacing}, steps)
        for spacing in spacings
        for steps in all_steps
    ]


def cogview4_grid(steps):
    """What CogView4Pipeline.__call__ passes to set_timesteps."""
    timesteps = np.linspace(1000, 1.0, steps).astype(np.int64).astype(np.float32)
    return {"timesteps": timesteps, "sigmas": timesteps / 1000}


def flow_cases():
    """Configs, steps, and how the scheduler is told of the image."""
    yield from [(SD3, 1), (SD3, 4), (SD35, 28), ({**SD3, "shift": 1.0}, 10)]
    for seq_len in (256, 1024, 4096):
        yield DYNAMIC, 6, {"mu": sd3_shift(seq_len)}
        yield COGVIEW4, 6, {"mu": cogview4_shift(seq_len), **cogview4_grid(6)}
    yield COGVIEW4, 50, {"mu": cogview4_shift(4096), **cogview4_grid(50)}
    yield {**COGVIEW4, "time_shift_type": "exponential"}, 5, {"mu": 0.8, **cogview4_grid(5)}
    yield {**COGVIEW4, "use_dynamic_shifting": False, "shift": 2.5}, 5, cogview4_grid(5)
    yield {**SD3, "shift_terminal": 0.1}, 5, {}
    yield {**DYNAMIC, "shift_terminal": 0.1}, 5, {"mu": 1.0, "sigmas": np.linspace(1.0, 0.2, 5)}
    for schedule in ("karras", "exponential", "beta"):
        yield {**SD35, f"use_{schedule}_sigmas": True}, 8, {}
        yield {**COGVIEW4, f"use_{schedule}_sigmas": True}, 5, {"mu": 0.9, **cogview4_grid(5)}


def unipc_cases():
    for order, solver in ((1, "bh2"), (2, "bh1"), (3, "bh1"), (3, "bh2")):
        # diffusers' bh1 computes NaN at a last sigma of 0.
        config = {**(SIGMA_MIN if solver == "bh1" else BASE), "solver_order": order, "solver_type": solver}
        yield from [(config, 8), ({**config, "prediction_type": "v_prediction"}, 20)]
    yield from [(SIGMA_MIN, 6), ({**SIGMA_MIN, "lower_order_final": False}, 6)]
    yield from [({**SIGMA_MIN, "lower_order_final": False, "solver_order": 3}, 8)]
    for prediction in ("epsilon", "v_prediction", "sample"):
        yield {**SIGMA_MIN, "predict_x0": False, "prediction_type": prediction}, 8
    yield {**BASE, "disable_corrector": [0, 1, 4]}, 8
    for schedule in ("karras", "exponential", "beta"):
        yield from [({**BASE, f"use_{schedule}_sigmas": True}, 8), ({**ZERO_SNR, f"use_{schedule}_sigmas": True}, 6)]
    yield {**BASE, **COSINE, "use_karras_sigmas": True}, 6
    yield THRESHOLD, 6
    yield from [(UNIPC_FLOW, 1), (UNIPC_FLOW, 2), (UNIPC_FLOW, 6), (UNIPC_FLOW, 20)]
    yield {**UNIPC_FLOW, "solver_order": 3, "flow_shift": 1.0}, 8
    yield {**UNIPC_FLOW, "shift_terminal": 0.1}, 6
    for kind, mu in (("exponential", 1.15), ("linear", 3.25)):
        yield {**UNIPC_FLOW, "use_dynamic_shifting": True, "time_shift_type": kind}, 6, {"mu": mu}


SPACINGS = ["leading", "trailing", "linspace"]
ALL = all_of("epsilon", SPACINGS, [1, 4, 25]) + all_of("v_prediction", SPACINGS, [2, 10])
KARRAS_ALL = all_of("epsilon", ["linspace"], [1, 4, 25]) + all_of("v_prediction", ["linspace"], [2, 10])
SHARED = [(EMOJI, 10), (SD15, 10), ({}, 5), ({**BASE, **COSINE}, 6), (TRAINED, 4), (TRAINED, 10)]
ZERO = [(ZERO_SNR, 6)]
SAMPLE = [({**BASE, "prediction_type": "sample", "timestep_spacing": "trailing"}, 6)]
CLIP = [({**BASE, "clip_sample": True, "clip_sample_range": 1.2}, 6)]
THRESHOLDS = [(THRESHOLD, 6), ({**THRESHOLD, "prediction_type": "v_prediction"}, 4), ({**THRESHOLD, "sample_max_value": 1.0}, 3)]
OWN_SIGMAS = [
    ({**config, f"use_{schedule}_sigmas": True}, steps)
    for schedule in ("exponential", "beta")
    for config, steps in ((BASE, 8), ({**BASE, "prediction_type": "v_prediction"}, 20), (ZERO_SNR, 6))
]
LINEAR_END = [
    (SIGMA_MIN, 6),
    (SIGMA_MIN, 16),
    ({**SIGMA_MIN, "lower_order_final": False}, 6),
    ({**SIGMA_MIN, "euler_at_final": True}, 16),
    ({**BASE, "lower_order_final": False}, 6),
]
CLIPPED_LAMBDA = [
    ({**BASE, **COSINE, "lambda_min_clipped": -5.1, "timestep_spacing": spacing}, 10) for spacing in SPACINGS
]
# Without Runge-Kutta and with it; the class's own default is with.
PNDM = [({**BASE, "skip_prk_steps": False, "prediction_type": p, "timestep_spacing": s}, n)
        for p, s, n in (("epsilon", "leading", 4), ("epsilon", "linspace", 8), ("v_prediction", "trailing", 20))]
PNDM += [({**BASE, "set_alpha_to_one": True}, 6)]
EULER = [(SIGMA_MIN, 6), ({**BASE, "use_karras_sigmas": True}, 10), (SDXL, 5), (SD_TURBO, 1), (SD_TURBO, 4)]
EULER += [({**BASE, "use_karras_sigmas": True, "timestep_spacing": "leading"}, 10)]
LCM_STEPS = [(LCM, n) for n in (1, 2, 4, 7, 8, 50)] + [({**LCM, "prediction_type": p}, 4) for p in ("v_prediction", "sample")]
LCM_STEPS += [({**LCM, "original_inference_steps": 30, "timestep_scaling": 0.02}, 4), ({"_class_name": "LCMScheduler"}, 4)]
LCM_STEPS += [(THRESHOLD, 4), *CLIP, (EMOJI, 10), ({**BASE, **COSINE}, 6), (ZERO_SNR, 6)]
DPM = SHARED + ZERO + SAMPLE + LINEAR_END + THRESHOLDS
UNIPC = ALL + SHARED + ZERO + SAMPLE + list(unipc_cases())
PLAIN, KARRAS = {"use_karras_sigmas": False}, {"use_karras_sigmas": True}
ODE, SDE = {"algorithm_type": "dpmsolver++"}, {"algorithm_type": "sde-dpmsolver++"}

SCHEDULERS = {
    "ddim": (DDIMScheduler, {}, ALL + SHARED + ZERO + SAMPLE + CLIP + THRESHOLDS + [(SD21, 10)]),
    "pndm": (PNDMScheduler, {}, ALL + SHARED[:2] + [({}, 5), ({**BASE, **COSINE}, 6)] + PNDM),
    "euler": (EulerDiscreteScheduler, {}, ALL + SHARED + ZERO + SAMPLE + EULER + OWN_SIGMAS),
    # diffusers has no prediction_type "sample" here.
    "euler_ancestral": (EulerAncestralDiscreteScheduler, {}, ALL + SHARED + ZERO + [(SDXL_TURBO, 1), (SDXL_TURBO, 4)]),
    "dpmpp_2m": (DPMSolverMultistepScheduler, {**PLAIN, **ODE}, ALL + DPM + CLIPPED_LAMBDA + OWN_SIGMAS),
    "dpmpp_2m_karras": (DPMSolverMultistepScheduler, {**KARRAS, **ODE}, KARRAS_ALL + DPM),
    "dpmpp_2m_sde": (DPMSolverMultistepScheduler, {**PLAIN, **SDE}, ALL + DPM + OWN_SIGMAS),
    "dpmpp_2m_sde_karras": (DPMSolverMultistepScheduler, {**KARRAS, **SDE}, KARRAS_ALL + DPM),
    "unipc": (UniPCMultistepScheduler, {}, UNIPC),
    "lcm": (LCMScheduler, {}, LCM_STEPS),
    "flow_match_euler": (FlowMatchEulerDiscreteScheduler, {}, list(flow_cases())),
}
GRIDS = {
    **{name: [({**BASE, "timestep_spacing": spacing}, n) for spacing in SPACINGS for n in GRID_STEPS]
       for name in ("ddim", "pndm", "euler", "euler_ancestral", "dpmpp_2m", "unipc")},
    "dpmpp_2m_karras": [(BASE, n) for n in GRID_STEPS],
    "lcm": [(LCM, n) for n in (3, 5, 6, 9, 12, 16, 25, 33, 49)],
    "flow_match_euler": [(SD3, n) for n in GRID_STEPS],
}
DRAWS = (EulerAncestralDiscreteScheduler, LCMScheduler)


def fake_model(scaled, timestep):
    """0.3 x + 0.5 sin(i + t / 100), in double, rounded to float32."""
    index = np.arange(scaled.numel(), dtype=np.float64)
    output = 0.3 * scaled.numpy().flatten().astype(np.float64) + 0.5 * np.sin(index + float(timestep) / 100)
    return torch.from_numpy(output.astype(np.float32)).reshape(scaled.shape)


def shortest(values):
    """The shortest decimals that are these float32 values again."""
    return [float(str(np.float32(v))) for v in values]


def packed(arrays):
    return base64.b64encode(np.concatenate([np.asarray(a, dtype="<f4").flatten() for a in arrays]).tobytes()).decode()


def create(scheduler_class, overrides, config, steps, options=None):
    scheduler = scheduler_class.from_config(dict(config), **overrides)
    # Where the pipeline prescribes the steps, it says so instead of how many there are.
    scheduler.set_timesteps(None if options and "sigmas" in options else steps, **(options or {}))
    if not isinstance(scheduler, (DDIMScheduler, PNDMScheduler)):
        # Else the first step is looked up by its timestep, and where rounding makes the first two equal (Karras sigmas
        # with zero terminal SNR) diffusers takes the second and runs off the end.
        scheduler.set_begin_index(0)
    return scheduler


def x0_of(scheduler, result, output, sample, timestep, index):
    if isinstance(scheduler, (DPMSolverMultistepScheduler, UniPCMultistepScheduler)):
        if scheduler.config.get("predict_x0", True):
            return scheduler.model_outputs[-1]
        alpha, sigma = scheduler._sigma_to_alpha_sigma_t(scheduler.sigmas[index])
        return (sample - sigma * scheduler.model_outputs[-1]) / alpha
    if isinstance(scheduler, FlowMatchEulerDiscreteScheduler):
        return sample - scheduler.sigmas[index] * output
    if isinstance(scheduler, PNDMScheduler):
        alpha = scheduler.alphas_cumprod[timestep]
        if scheduler.config.prediction_type == "v_prediction":
            return alpha**0.5 * sample - (1 - alpha) ** 0.5 * output
        return (sample - (1 - alpha) ** 0.5 * output) / alpha**0.5
    return result.denoised if isinstance(scheduler, LCMScheduler) else result.pred_original_sample


def record(scheduler_class, overrides, config, steps, options=None):
    scheduler = create(scheduler_class, overrides, config, steps, options)
    generator = torch.Generator("cpu").manual_seed(SEED)
    sample = torch.randn(SHAPE, generator=generator) * scheduler.init_noise_sigma if hasattr(
        scheduler, "init_noise_sigma") else torch.randn(SHAPE, generator=generator)
    is_sde = scheduler.config.get("algorithm_type", "").startswith("sde-")
    step_options = {"generator": generator} if isinstance(scheduler, DRAWS) or is_sde else {}
    samples, originals = [], []
    for index, timestep in enumerate(scheduler.timesteps):
        is_flow = isinstance(scheduler, FlowMatchEulerDiscreteScheduler)
        scaled = sample if is_flow else scheduler.scale_model_input(sample, timestep)
        output = fake_model(scaled, timestep)
        result = scheduler.step(output, timestep, sample, **step_options)
        original = x0_of(scheduler, result, output, sample, timestep, index)
        sample = result.prev_sample
        assert torch.isfinite(sample).all() and torch.isfinite(original).all(), (overrides, config, steps)
        samples.append(sample)
        originals.append(original)
    given = {name: shortest(value) if isinstance(value, np.ndarray) else value for name, value in (options or {}).items()}
    return {
        # The class only says how the file is read; the test makes the scheduler it is about.
        "config": {"_class_name": scheduler_class.__name__, **config},
        "steps": steps,
        **({"given": given} if given else {}),
        "timesteps": shortest(scheduler.timesteps.tolist()),
        "initNoiseSigma": float(getattr(scheduler, "init_noise_sigma", 1)),
        "samples": packed(samples),
        "predictedOriginals": packed(originals),
    }


def write(path, head, **rows):
    lists = (f'"{name}": [\n' + ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in entries) + "\n]"
             for name, entries in rows.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join([json.dumps(head)[1:-1], *lists]) + "}\n")


generator = torch.Generator("cpu").manual_seed(SEED)
noise = packed([torch.randn(SHAPE, generator=generator) for _ in range(51)])
for name, (scheduler_class, overrides, cases) in SCHEDULERS.items():
    recorded = [record(scheduler_class, overrides, *case) for case in cases]
    grids = []
    for config, steps in GRIDS.get(name, []):
        scheduler = create(scheduler_class, overrides, config, steps)
        config = {"_class_name": scheduler_class.__name__, **config}
        grids.append({"config": config, "steps": steps, "timesteps": shortest(scheduler.timesteps.tolist())})
    write(TARGET / f"schedulers/{name}.json", {"versions": VERSIONS, "noise": noise}, cases=recorded, grids=grids)
    print(name, len(recorded), "cases")

probabilities = sorted({float(p) for n in (2, 3, 10, 25, 1000) for p in 1 - np.linspace(0, 1, n)}, reverse=True)[::9]
quantiles = [[p, 0.6, float(scipy.stats.beta.ppf(p, 0.6, 0.6))] for p in [1.0, *probabilities, 1e-9, 0.0]]
quantiles += [[p, shape, float(scipy.stats.beta.ppf(p, shape, shape))] for p in (1e-6, 0.3, 0.5, 0.9) for shape in (0.2, 1.0)]
write(TARGET / "beta-quantiles.json", {"versions": VERSIONS}, quantiles=quantiles)
seq_lens = (256, 1000, 1024, 4096, 16384)
write(
    TARGET / "flow-shifts.json",
    {"versions": VERSIONS},
    interpolated=[[n, sd3_shift(n)] for n in seq_lens],
    squareRoot=[[n, cogview4_shift(n)] for n in seq_lens],
)
