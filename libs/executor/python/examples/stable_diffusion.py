"""
Rows of any Stable Diffusion pipeline of diffusers, in the directory or repository PIPELINE.

Images of one size share each call of the UNet, whatever their steps, guidance and seeds.
"""

import copy
import inspect
import io
import os

import torch
from diffusers import StableDiffusionPipeline

from darkroom_engine import Engine, InvalidRequest, Report

DEVICE = os.environ.get("TORCH_DEVICE", "cuda" if torch.cuda.is_available() else "cpu")


class Row:
    """One image: its latents, its own scheduler, and the embeddings of its prompts (without guidance only one)."""

    def __init__(self, request, scheduler, embeds):
        self.request, self.scheduler, self.embeds = request, scheduler, embeds
        self.generator = torch.Generator("cpu").manual_seed(request.seed)
        self.step = 0

    def steps_after(self, calls):
        """Return how many of the request's steps so many calls of the scheduler complete."""
        return self.request.input["numInferenceSteps"] * calls // len(self.scheduler.timesteps)

    def state(self):
        """All that changes from step to step, as values that torch loads without pickle."""
        scheduler = {name: value for name, value in vars(self.scheduler).items() if is_plain(value)}
        return {"step": self.step, "latents": self.latents, "scheduler": scheduler, "rng": self.generator.get_state()}

    def restore(self, checkpoint):
        state = torch.load(io.BytesIO(checkpoint), weights_only=True)
        self.step, self.latents = state["step"], state["latents"].to(DEVICE)
        vars(self.scheduler).update(state["scheduler"])
        self.generator.set_state(state["rng"])


def is_plain(value):
    if isinstance(value, list):
        return all(is_plain(each) for each in value)
    return value is None or isinstance(value, (bool, int, float, torch.Tensor))


class StableDiffusion(Engine):
    slots = int(os.environ.get("SLOTS", "8"))

    def __init__(self, model):
        self.pipe = StableDiffusionPipeline.from_pretrained(os.environ["PIPELINE"], safety_checker=None).to(DEVICE)
        unet, factor = self.pipe.unet.config, self.pipe.vae_scale_factor
        side = unet.sample_size * factor
        sizes = {"multiple": factor * 2 ** (len(unet.block_out_channels) - 1), "min": 64, "max": 2 * side}
        self.card = {
            "kind": "image",
            "sizes": {**sizes, "default": {"width": side, "height": side}},
            "steps": {"min": 1, "max": 200, "default": 20},
            "guidance": {"min": 0, "max": 20, "default": 7.5},
        }
        self.projection = self.fit_projection()

    @torch.inference_mode()
    def create_row(self, request):
        wanted = request.input
        if wanted["guidanceRescale"] > 0:
            raise InvalidRequest("guidance_rescale: is not supported by this model, leave it out")
        scheduler = copy.deepcopy(self.pipe.scheduler)
        scheduler.set_timesteps(wanted["numInferenceSteps"], device=DEVICE)
        has_guidance = wanted["guidanceScale"] > 1
        negative = wanted["negativePrompt"]
        positive, negative = self.pipe.encode_prompt(wanted["prompt"], DEVICE, 1, has_guidance, negative)
        row = Row(request, scheduler, torch.cat([negative, positive]) if has_guidance else positive)
        if request.checkpoint is None:
            factor = self.pipe.vae_scale_factor
            shape = (1, self.pipe.unet.config.in_channels, wanted["height"] // factor, wanted["width"] // factor)
            noise = torch.randn(shape, generator=row.generator)
            row.latents = noise.to(DEVICE, positive.dtype) * scheduler.init_noise_sigma
        else:
            row.restore(request.checkpoint)
        return row

    @torch.inference_mode()
    def step(self, rows):
        times = [row.scheduler.timesteps[row.step] for row in rows]
        counts = [len(row.embeds) for row in rows]
        scaled = [row.scheduler.scale_model_input(row.latents, time) for row, time in zip(rows, times)]
        sample = torch.cat([each.expand(count, -1, -1, -1) for each, count in zip(scaled, counts)])
        time = torch.stack([each for each, count in zip(times, counts) for _ in range(count)])
        embeds = torch.cat([row.embeds for row in rows])
        found = self.pipe.unet(sample, time, encoder_hidden_states=embeds).sample.split(counts)
        return [self.advance(row, time, guess) for row, time, guess in zip(rows, times, found)]

    def advance(self, row, time, guess):
        if len(guess) == 2:
            negative, positive = guess.split(1)
            guess = negative + row.request.input["guidanceScale"] * (positive - negative)
        more = {"generator": row.generator} if "generator" in inspect.signature(row.scheduler.step).parameters else {}
        outcome = row.scheduler.step(guess, time, row.latents, **more)
        row.latents = outcome.prev_sample
        row.step += 1
        left = len(row.scheduler.timesteps) - row.step
        # Some schedulers take several calls for a step. Only the last of them completes it.
        before, step = (row.steps_after(calls) for calls in (row.step - 1, row.step))
        if step == before:
            return Report(steps_left=left)
        preview = self.preview(row) if row.request.wants_preview(step) else None
        return Report(step=step, preview=preview, done=left == 0, steps_left=left)

    @torch.inference_mode()
    def finish(self, row):
        decoded = self.pipe.vae.decode(row.latents / self.pipe.vae.config.scaling_factor).sample
        return to_pixels(decoded[0].permute(1, 2, 0) / 2 + 0.5)

    def checkpoint(self, row):
        file = io.BytesIO()
        torch.save(row.state(), file)
        return file.getvalue()

    def shape(self, row):
        return f"{row.request.input['width']}x{row.request.input['height']}"

    def preview(self, row):
        ones = torch.ones_like(row.latents[:, :1])
        return to_pixels(torch.cat([row.latents, ones], 1)[0].permute(1, 2, 0) @ self.projection)

    @torch.inference_mode()
    def fit_projection(self):
        """Fit the matrix from latents to colours, on latents of smooth noise."""
        channels = self.pipe.unet.config.in_channels
        noise = torch.randn((1, channels, 4, 4), generator=torch.Generator().manual_seed(0)).to(DEVICE)
        latents = torch.nn.functional.interpolate(noise, scale_factor=8, mode="bicubic")
        images = self.pipe.vae.decode(latents / self.pipe.vae.config.scaling_factor).sample / 2 + 0.5
        colors = torch.nn.functional.adaptive_avg_pool2d(images, latents.shape[-2:])
        flat = torch.cat([latents, torch.ones_like(latents[:, :1])], 1)[0].flatten(1).T
        return torch.linalg.lstsq(flat, colors[0].flatten(1).T).solution


def to_pixels(image):
    return (image.clamp(0, 1) * 255).round().to(torch.uint8).contiguous()


create_engine = StableDiffusion
