"""Records whole runs of diffusers' pipelines that start from an image, and of those that paint a part of it anew, for the
tests of ours. The models are those of record-pipelines.py and record-stable-diffusion-3.py.

    pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0 onnx==1.23.2 numpy==2.4.6 pillow==13.0.0
    python tools/golden/record-edits.py [name...]

Recorded with Python 3.11 on the CPU, into vectors/edits/: <name>.json has the images and masks that were given (8 bits, by
size), and of each run the request, the latents after each step (float32) and the image (8 bits, RGB), all in base64,
little-endian. unets/ has the UNets that were made for inpainting: the rest of their models is that of the same name without
"-inpainting". vae-encoders/ has encoders as older exporters wrote them, which give a sample or a mean.
"""

import importlib
import inspect
import json
import pathlib
import sys

import diffusers
import numpy as np
import torch
from diffusers import (
    LatentConsistencyModelImg2ImgPipeline,
    StableDiffusion3Img2ImgPipeline,
    StableDiffusion3InpaintPipeline,
    StableDiffusionImg2ImgPipeline,
    StableDiffusionInpaintPipeline,
    StableDiffusionXLImg2ImgPipeline,
    StableDiffusionXLInpaintPipeline,
    UniPCMultistepScheduler,
)
from PIL import Image
from transformers import CLIPTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).parent))
shared = importlib.import_module("record-pipelines")
of_3 = importlib.import_module("record-stable-diffusion-3")

TARGET = shared.ROOT / "tools/golden/vectors/edits"
KARRAS, SDE = {"use_karras_sigmas": True}, {"algorithm_type": "sde-dpmsolver++"}
SCHEDULERS = {
    "ddim": (diffusers.DDIMScheduler, {}),
    "pndm": (diffusers.PNDMScheduler, {}),
    "euler": (diffusers.EulerDiscreteScheduler, {}),
    "euler_ancestral": (diffusers.EulerAncestralDiscreteScheduler, {}),
    "dpmpp_2m": (diffusers.DPMSolverMultistepScheduler, {}),
    "dpmpp_2m_karras": (diffusers.DPMSolverMultistepScheduler, KARRAS),
    "dpmpp_2m_sde": (diffusers.DPMSolverMultistepScheduler, SDE),
    "dpmpp_2m_sde_karras": (diffusers.DPMSolverMultistepScheduler, {**KARRAS, **SDE}),
    "unipc": (UniPCMultistepScheduler, {}),
    "lcm": (diffusers.LCMScheduler, {}),
    "flow_match_euler": (diffusers.FlowMatchEulerDiscreteScheduler, {}),
}


class UniPcOfFlow(UniPCMultistepScheduler):
    """Has what pipelines of flow models call to put noise on an image: it does so under another name."""

    def scale_noise(self, sample, timestep, noise):
        return self.add_noise(sample, noise, timestep)


def scheduler_of(name, config, strength):
    if name == "unipc" and "flow" in config["_class_name"].lower():
        flow = {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "flow_shift": config["shift"]}
        return UniPcOfFlow.from_config({**config, **flow})
    scheduler_class, overrides = SCHEDULERS[name]
    if name == "pndm" and strength < 1:
        # Its Runge-Kutta steps are the first ones or none: diffusers takes them from where the latents are not.
        overrides = {"skip_prk_steps": True}
    return scheduler_class.from_config(config, **overrides)


def image_of(width, height):
    """Slopes of color, and a bright disk."""
    y, x = np.mgrid[0:height, 0:width]
    disk = ((x - width * 0.4) ** 2 + (y - height * 0.5) ** 2) < (min(width, height) * 0.3) ** 2
    red = np.where(disk, 230, x * 200 // width)
    green = np.where(disk, 180, 255 - y * 160 // height)
    blue = np.where(disk, 20 + x * 3, (x + y) * 255 // (width + height))
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


def mask_of(width, height):
    """A rectangle, with a column on either side of the threshold."""
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[height // 4 : height * 3 // 4, width // 2 :] = 255
    mask[:, width // 4] = 127
    mask[:, width // 2 - 2] = 128
    return mask


def decoded_with_shift(vae, latents):
    """As the other pipelines of the family do it. This one forgets: https://github.com/huggingface/diffusers/issues/13611"""
    scaled = torch.from_numpy(latents)[None] / vae.config.scaling_factor + vae.config.shift_factor
    with torch.no_grad():
        sample = vae.decode(scaled).sample[0]
    return (sample / 2 + 0.5).clamp(0, 1).permute(1, 2, 0).numpy()


def recorded_run(pipeline, config, case):
    request = {"prompt": shared.PROMPT, "seed": 7, "width": 24, "height": 16, **case}
    latents = []

    def keep(_pipeline, _step, _timestep, tensors):
        latents.append(tensors["latents"][0].numpy().copy())
        return tensors

    size = request["width"], request["height"]
    options = {
        "prompt": request["prompt"],
        "image": Image.fromarray(image_of(*size)),
        "mask_image": Image.fromarray(mask_of(*size)),
        "width": request["width"],
        "height": request["height"],
        "strength": request["strength"],
        "num_inference_steps": request["numInferenceSteps"],
        "guidance_scale": request["guidanceScale"],
        "negative_prompt": request.get("negativePrompt"),
        "guidance_rescale": request.get("guidanceRescale", 0.0),
        "generator": torch.Generator("cpu").manual_seed(request["seed"]),
        "callback_on_step_end": keep,
        "output_type": "np",
    }
    # Those that begin with an image take its size, and have no field for another.
    known = inspect.signature(type(pipeline).__call__).parameters
    pipeline.set_progress_bar_config(disable=True)
    pipeline.scheduler = scheduler_of(request["scheduler"], config, request["strength"])
    image = pipeline(**{name: value for name, value in options.items() if name in known}).images[0]
    if isinstance(pipeline, StableDiffusion3InpaintPipeline):
        image = decoded_with_shift(pipeline.vae, latents[-1])
    pixels = (image * 255).round()
    return {"request": request, "latents": shared.packed(latents, "<f4"), "image": shared.packed([pixels], "u1")}


def record(name, runs, model):
    """`runs`: pipelines with the cases of each. Those with a mask say so."""
    config = json.loads((shared.TARGET / model / "model/scheduler/scheduler_config.json").read_text())
    recorded = [recorded_run(pipeline, config, case) for pipeline, cases in runs for case in cases]
    sizes = {(run["request"]["width"], run["request"]["height"]) for run in recorded}
    given = {
        f"{width}x{height}": {
            "image": shared.packed([image_of(width, height)], "u1"),
            "mask": shared.packed([mask_of(width, height)], "u1"),
        }
        for width, height in sorted(sizes)
    }
    versions = {"torch": torch.__version__, "diffusers": diffusers.__version__}
    TARGET.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join("  " + json.dumps(row) for row in recorded)
    head = f'"versions": {json.dumps(versions)}, "model": {json.dumps(model)}, "given": {json.dumps(given)}'
    (TARGET / f"{name}.json").write_text("{" + head + ', "runs": [\n' + rows + "\n]}\n")
    print(name, len(recorded), "runs")


def tokenizers(name, *folders):
    return {folder: CLIPTokenizer.from_pretrained(str(shared.TARGET / name / "model" / folder)) for folder in folders}


def of_image(cases):
    return [{"image": True, **case} for case in cases]


def of_mask(cases):
    return [{"image": True, "mask": True, **case} for case in cases]


UNCHECKED = {"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False}
LARGER = {"width": 24, "height": 40, "seed": 1}
DIFFUSION = [name for name in SCHEDULERS if name != "flow_match_euler"]


def stable_diffusion_2():
    name = "stable-diffusion-2"
    parts = {**shared.stable_diffusion_2_parts(), **tokenizers(name, "tokenizer"), **UNCHECKED}
    usual = {"numInferenceSteps": 5, "guidanceScale": 4}
    images = [
        *({"scheduler": each, "strength": 0.75, **usual} for each in DIFFUSION),
        {"scheduler": "pndm", "strength": 0.9, "numInferenceSteps": 8, "guidanceScale": 1},
        {"scheduler": "pndm", "strength": 0.3, "numInferenceSteps": 5, "guidanceScale": 1},
        {"scheduler": "dpmpp_2m", "strength": 0.4, "numInferenceSteps": 16, "guidanceScale": 1},
        {"scheduler": "unipc", "strength": 1, **usual},
        {"scheduler": "euler", "strength": 1, "negativePrompt": "a house", **usual, **LARGER},
        {"scheduler": "ddim", "strength": 0.35, "numInferenceSteps": 4, "guidanceScale": 7.5, **LARGER},
    ]
    masks = [
        *({"scheduler": each, "strength": 0.8, **usual} for each in DIFFUSION),
        *({"scheduler": each, "strength": 1, **usual} for each in ("ddim", "euler", "euler_ancestral", "pndm")),
        {"scheduler": "dpmpp_2m", "strength": 0.6, "negativePrompt": "a house", **usual, **LARGER},
    ]
    runs = [
        (StableDiffusionImg2ImgPipeline(**parts), of_image(images)),
        (StableDiffusionInpaintPipeline(**parts), of_mask(masks)),
    ]
    record(name, runs, name)
    export_old_encoders(parts["vae"])


def export_old_encoders(vae):
    for kind, give in {"sample": lambda latents: latents.sample(), "mean": lambda latents: latents.mode()}.items():
        folder = TARGET / "vae-encoders" / kind
        shared.export_vae_encoder(folder, vae, give, output="latent_sample")
        (folder / "config.json").unlink()


def latent_consistency():
    name = "latent-consistency"
    parts = {**shared.latent_consistency_parts(), **tokenizers(name, "tokenizer"), **UNCHECKED}
    cases = [
        {"scheduler": "lcm", "numInferenceSteps": 4, "guidanceScale": 8.5, "strength": 0.8},
        {"scheduler": "lcm", "numInferenceSteps": 3, "guidanceScale": 1.5, "strength": 0.33, **LARGER},
        {"scheduler": "lcm", "numInferenceSteps": 2, "guidanceScale": 4, "strength": 1},
    ]
    record(name, [(LatentConsistencyModelImg2ImgPipeline(**parts), of_image(cases))], name)


def stable_diffusion_xl():
    name = "stable-diffusion-xl"
    parts = {**shared.stable_diffusion_xl_parts(), **tokenizers(name, "tokenizer", "tokenizer_2")}
    options = {"force_zeros_for_empty_prompt": True, "add_watermarker": False}
    images = [
        {"scheduler": "euler", "numInferenceSteps": 5, "guidanceScale": 5, "strength": 0.6, "negativePrompt": "a house"},
        {"scheduler": "dpmpp_2m", "numInferenceSteps": 5, "guidanceScale": 6, "strength": 0.5, "guidanceRescale": 0.7},
        # SDXL-Turbo: two steps of which one is left.
        {"scheduler": "euler_ancestral", "numInferenceSteps": 2, "guidanceScale": 0, "strength": 0.5},
        {"scheduler": "euler", "numInferenceSteps": 4, "guidanceScale": 7.5, "strength": 1, **LARGER},
    ]
    masks = [
        {"scheduler": "euler", "numInferenceSteps": 4, "guidanceScale": 5, "strength": 0.8, "negativePrompt": "a house"},
        {"scheduler": "euler_ancestral", "numInferenceSteps": 3, "guidanceScale": 1, "strength": 1},
        {"scheduler": "unipc", "numInferenceSteps": 5, "guidanceScale": 7.5, "strength": 0.7, **LARGER},
    ]
    runs = [
        (StableDiffusionXLImg2ImgPipeline(**parts, **options), of_image(images)),
        (StableDiffusionXLInpaintPipeline(**parts, **options), of_mask(masks)),
    ]
    record(name, runs, name)


def export_inpainting_unet(name, unet, extra):
    folder = TARGET / "unets" / name
    shared.export_unet(folder, unet, extra, timestep_per_row=bool(extra))
    of_3.shorten_names(folder / "model.onnx")


def stable_diffusion_2_inpainting():
    name, model = "stable-diffusion-2-inpainting", "stable-diffusion-2"
    parts = {**shared.stable_diffusion_2_parts(in_channels=9), **tokenizers(model, "tokenizer"), **UNCHECKED}
    export_inpainting_unet(name, parts["unet"], {})
    cases = [
        {"scheduler": "ddim", "numInferenceSteps": 4, "guidanceScale": 7.5, "strength": 1},
        {"scheduler": "euler_ancestral", "numInferenceSteps": 4, "guidanceScale": 3, "strength": 1, "negativePrompt": "a house"},
        {"scheduler": "pndm", "numInferenceSteps": 5, "guidanceScale": 5, "strength": 0.75},
        {"scheduler": "euler_ancestral", "numInferenceSteps": 5, "guidanceScale": 1, "strength": 0.6, **LARGER},
    ]
    record(name, [(StableDiffusionInpaintPipeline(**parts), of_mask(cases))], model)


def stable_diffusion_xl_inpainting():
    name, model = "stable-diffusion-xl-inpainting", "stable-diffusion-xl"
    parts = {**shared.stable_diffusion_xl_parts(in_channels=9), **tokenizers(model, "tokenizer", "tokenizer_2")}
    export_inpainting_unet(name, parts["unet"], {"text_embeds": 24, "time_ids": 6})
    cases = [
        {"scheduler": "euler", "numInferenceSteps": 4, "guidanceScale": 7.5, "strength": 1},
        {"scheduler": "euler_ancestral", "numInferenceSteps": 4, "guidanceScale": 5, "strength": 0.99, "negativePrompt": "a house"},
    ]
    pipeline = StableDiffusionXLInpaintPipeline(**parts, force_zeros_for_empty_prompt=True, add_watermarker=False)
    record(name, [(pipeline, of_mask(cases))], model)


FLOW = {"scheduler": "flow_match_euler"}
FLOW_IMAGES = [
    # Of five steps and a half the half is not left out: these pipelines round the other way.
    {**FLOW, "numInferenceSteps": 5, "guidanceScale": 7, "strength": 0.5, "negativePrompt": "a house"},
    {**FLOW, "numInferenceSteps": 4, "guidanceScale": 4.5, "strength": 1, **LARGER},
    {"scheduler": "unipc", "numInferenceSteps": 4, "guidanceScale": 6, "strength": 0.6},
]
FLOW_MASKS = [
    {**FLOW, "numInferenceSteps": 4, "guidanceScale": 7, "strength": 0.8},
    {**FLOW, "numInferenceSteps": 3, "guidanceScale": 1, "strength": 1, **LARGER},
    {"scheduler": "unipc", "numInferenceSteps": 4, "guidanceScale": 6, "strength": 0.6},
]


def stable_diffusion_3():
    parts, encoders, third = of_3.create_parts()
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0)
    all_parts = {**parts, **encoders, **third, "scheduler": scheduler}
    runs = [
        (StableDiffusion3Img2ImgPipeline(**all_parts), of_image(FLOW_IMAGES)),
        (StableDiffusion3InpaintPipeline(**all_parts), of_mask(FLOW_MASKS)),
    ]
    record(of_3.NAME, runs, of_3.NAME)
    without = {**all_parts, "text_encoder_3": None, "tokenizer_3": None}
    runs = [
        (StableDiffusion3Img2ImgPipeline(**without), of_image(FLOW_IMAGES[:1])),
        (StableDiffusion3InpaintPipeline(**without), of_mask(FLOW_MASKS[:1])),
    ]
    record(of_3.WITHOUT_T5, runs, of_3.WITHOUT_T5)


RECORDERS = {
    "stable-diffusion-2": stable_diffusion_2,
    "latent-consistency": latent_consistency,
    "stable-diffusion-xl": stable_diffusion_xl,
    "stable-diffusion-2-inpainting": stable_diffusion_2_inpainting,
    "stable-diffusion-xl-inpainting": stable_diffusion_xl_inpainting,
    "stable-diffusion-3": stable_diffusion_3,
}
if __name__ == "__main__":
    for recorder in sys.argv[1:] or RECORDERS:
        RECORDERS[recorder]()
