"""Records one whole image of models/emoji-sd (INT8 files), and its latents with every scheduler, for the tests of the
pipeline.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 onnxruntime==1.31.1 numpy==2.4.6
    python tools/golden/record-image.py [image.png]

Recorded with Python 3.11 on the CPU, the CPU provider of ONNX Runtime. The steps are those of diffusers'
OnnxStableDiffusionPipeline: unconditional and conditional half in one batch, unconditional first. Recorded: input_ids
of both prompts, the latents at the end, and the decoded image in 0 … 1, averaged over 8 x 8 pixels to 16 x 16; with
every scheduler the latents after each of a few steps, in base64 of little-endian float32.
"""

import base64
import json
import pathlib
import sys

import diffusers
import numpy as np
import onnxruntime
import torch
import transformers
from diffusers import (
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    LCMScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
)
from transformers import CLIPTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/emoji-sd"
TARGET = ROOT / "tools/golden/vectors/emoji-sd-int8-seed7.json"
STEPS_TARGET = ROOT / "tools/golden/vectors/emoji-sd-int8-schedulers.json"
PROMPT, NEGATIVE_PROMPT = "a red apple on a white background", ""
SEED, STEPS, GUIDANCE, SIZE = 7, 10, 3, 128
FEW_STEPS = 5
KARRAS, SDE = {"use_karras_sigmas": True}, {"algorithm_type": "sde-dpmsolver++"}
SCHEDULERS = {
    "ddim": (DDIMScheduler, {}),
    "pndm": (PNDMScheduler, {}),
    "euler": (EulerDiscreteScheduler, {}),
    "euler_ancestral": (EulerAncestralDiscreteScheduler, {}),
    "dpmpp_2m": (DPMSolverMultistepScheduler, {}),
    "dpmpp_2m_karras": (DPMSolverMultistepScheduler, KARRAS),
    "dpmpp_2m_sde": (DPMSolverMultistepScheduler, SDE),
    "dpmpp_2m_sde_karras": (DPMSolverMultistepScheduler, {**KARRAS, **SDE}),
    "unipc": (UniPCMultistepScheduler, {}),
    "lcm": (LCMScheduler, {}),
}
DRAWING = ("euler_ancestral", "dpmpp_2m_sde", "dpmpp_2m_sde_karras", "lcm")


def session(part):
    return onnxruntime.InferenceSession(MODEL / part / "model_int8.onnx", providers=["CPUExecutionProvider"])


def shortest(array):
    """The shortest decimals that are these float32 values again, flat."""
    return [float(str(value)) for value in np.asarray(array, dtype=np.float32).flatten()]


tokenizer = CLIPTokenizer.from_pretrained(str(MODEL / "tokenizer"))
text_encoder, unet, decoder = session("text_encoder"), session("unet"), session("vae_decoder")
scaling_factor = json.loads((MODEL / "vae_decoder/config.json").read_text())["scaling_factor"]
prompts = [NEGATIVE_PROMPT, PROMPT]
input_ids = np.array(tokenizer(prompts, padding="max_length", max_length=77, truncation=True).input_ids, dtype=np.int64)
embeddings = text_encoder.run(["last_hidden_state"], {"input_ids": input_ids})[0]



def latents_with(name, steps):
    """After each step."""
    scheduler_class, overrides = SCHEDULERS[name]
    config = json.loads((MODEL / "scheduler/scheduler_config.json").read_text())
    scheduler = scheduler_class.from_config(config, **overrides)
    scheduler.set_timesteps(steps)
    generator = torch.Generator("cpu").manual_seed(SEED)
    options = {"generator": generator} if name in DRAWING else {}
    latents = torch.randn((1, 4, SIZE // 8, SIZE // 8), generator=generator) * scheduler.init_noise_sigma
    for timestep in scheduler.timesteps:
        scaled = scheduler.scale_model_input(latents, timestep).repeat(2, 1, 1, 1)
        inputs = {
            "sample": scaled.numpy(),
            "timestep": np.array([timestep.item()], dtype=np.int64),
            "encoder_hidden_states": embeddings,
        }
        unconditional, conditional = torch.from_numpy(unet.run(None, inputs)[0]).chunk(2)
        guided = unconditional + GUIDANCE * (conditional - unconditional)
        latents = scheduler.step(guided, timestep, latents, **options).prev_sample
        yield latents


def packed(arrays):
    return base64.b64encode(np.concatenate([array.numpy().astype("<f4").flatten() for array in arrays]).tobytes()).decode()


latents = list(latents_with("dpmpp_2m", STEPS))[-1]
decoded = decoder.run(None, {"latent_sample": (latents / scaling_factor).numpy()})[0]
image = np.clip(decoded[0] / 2 + 0.5, 0, 1)
pooled = image.reshape(3, 16, SIZE // 16, 16, SIZE // 16).mean(axis=(2, 4))

versions = {
    "torch": torch.__version__,
    "diffusers": diffusers.__version__,
    "transformers": transformers.__version__,
    "onnxruntime": onnxruntime.__version__,
}
recorded = {
    "versions": versions,
    "prompt": PROMPT,
    "negativePrompt": NEGATIVE_PROMPT,
    "seed": SEED,
    "steps": STEPS,
    "guidance": GUIDANCE,
    "width": SIZE,
    "height": SIZE,
    "negativeInputIds": input_ids[0].tolist(),
    "inputIds": input_ids[1].tolist(),
    # [4, 16, 16], as the scheduler leaves them: not yet divided by the scaling factor.
    "latents": shortest(latents.numpy()),
    # [3, 16, 16], channels first.
    "pooledImage": shortest(pooled),
}
TARGET.parent.mkdir(parents=True, exist_ok=True)
TARGET.write_text("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in recorded.items()) + "\n}\n")

steps = {name: packed(latents_with(name, FEW_STEPS)) for name in SCHEDULERS}
rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in steps.items())
head = f'"versions": {json.dumps(versions)}, "prompt": {json.dumps(PROMPT)}, "steps": {FEW_STEPS}'
STEPS_TARGET.write_text("{" + head + ', "latents": {\n' + rows + "\n}}\n")

if len(sys.argv) > 1:
    from PIL import Image

    Image.fromarray((image.transpose(1, 2, 0) * 255).round().astype(np.uint8)).save(sys.argv[1])
