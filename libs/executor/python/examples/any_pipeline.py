"""Any text-to-image pipeline of diffusers, in the directory or repository PIPELINE, one call for several images."""

import os

import torch
from diffusers import DiffusionPipeline

from darkroom_engine import RunEngine

DEVICE = os.environ.get("TORCH_DEVICE", "cuda" if torch.cuda.is_available() else "cpu")


class AnyPipeline(RunEngine):
    slots = int(os.environ.get("SLOTS", "4"))
    card = {
        "kind": "image",
        "sizes": {"multiple": 32, "min": 64, "max": 2048, "default": {"width": 512, "height": 512}},
        "steps": {"min": 1, "max": 100, "default": 20},
        "guidance": {"min": 0, "max": 20, "default": 5},
    }

    def __init__(self, model):
        self.pipe = DiffusionPipeline.from_pretrained(os.environ["PIPELINE"], torch_dtype="auto").to(DEVICE)
        self.pipe.set_progress_bar_config(disable=True)

    def shape(self, request):
        """Images share a call if they are equal in all that the call takes once."""
        names = ("width", "height", "numInferenceSteps", "guidanceScale")
        return "/".join(str(request.input[name]) for name in names)

    def run(self, requests):
        wanted = requests[0].input

        def report(pipe, call, _time, values):
            # Some schedulers take several calls for a step. Only the last of them completes it.
            calls = len(pipe.scheduler.timesteps)
            before, step = (wanted["numInferenceSteps"] * each // calls for each in (call, call + 1))
            for request in requests:
                if step > before and not request.canceled:
                    request.report(step=step)
            return values

        images = self.pipe(
            prompt=[request.input["prompt"] for request in requests],
            negative_prompt=[request.input["negativePrompt"] for request in requests],
            width=wanted["width"],
            height=wanted["height"],
            num_inference_steps=wanted["numInferenceSteps"],
            guidance_scale=wanted["guidanceScale"],
            generator=[torch.Generator("cpu").manual_seed(request.seed) for request in requests],
            callback_on_step_end=report,
            output_type="np",
        ).images
        return [(image * 255).round().astype("uint8") for image in images]


create_engine = AnyPipeline
