"""models/emoji-sd in Python, as one would write it for a server: text encoder, UNet with classifier-free guidance, VAE decoder and
DPM-Solver++(2M), with numpy and onnxruntime. Steps and guidance are a row's own, so that rows of any requests can share a call.

Sources: Rombach et al. 2022 (the noise schedule, scaled_linear), Lin et al. 2023 (trailing timesteps), Salimans and Ho 2022 (the
velocity that the model predicts), Lu et al. 2022, "DPM-Solver++", algorithm 2. Noise is that of torch's generator, so that a seed gives
the image that it gives in diffusers.
"""

import io
import json
import os
from itertools import groupby
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

TRAINED_STEPS = 1000
BETAS = np.linspace(0.00085**0.5, 0.012**0.5, TRAINED_STEPS) ** 2
KEPT = np.cumprod(1 - BETAS)
SIGMAS = np.sqrt((1 - KEPT) / KEPT)
CHANNELS, FACTOR, TOKENS = 4, 8, 77


class Row:
    """One image on its way."""

    def __init__(self, request, text):
        self.steps = request["steps"]
        self.guidance = request["guidance"]
        self.text = text
        self.done = 0
        self.coefficients = coefficients_of(self.steps)
        self.latents = noise_of(request["seed"], (CHANNELS, request["height"] // FACTOR, request["width"] // FACTOR))
        self.earlier = np.zeros_like(self.latents)


class Images:
    """The loaded model."""

    def __init__(self):
        directory = Path(os.environ["MODEL_DIR"])
        self.text_encoder, self.unet, self.decoder = (
            open_session(directory / name / "model_int8.onnx") for name in ("text_encoder", "unet", "vae_decoder")
        )
        self.tokenizer = open_tokenizer(directory / "tokenizer")
        self.scaling = np.float32(json.loads((directory / "vae_decoder/config.json").read_text())["scaling_factor"])
        self.without_prompt = self.read([""])[0]
        # Steps of images so far, for whoever measures.
        self.counter = np.memmap(os.environ["STEP_COUNTER"], np.uint64, "r+", shape=(1,))
        self.together, self.texts = None, None

    def read(self, prompts):
        ids = np.array([encoding.ids for encoding in self.tokenizer.encode_batch(prompts)], np.int64)
        return self.text_encoder.run(["last_hidden_state"], {"input_ids": ids})[0]

    def start(self, requests):
        """Rows for requests."""
        return [Row(each, text) for each, text in zip(requests, self.read([each["prompt"] for each in requests]))]

    def step(self, rows):
        """One step of rows that are not done, in one call of the model."""
        guided = [at for at, row in enumerate(rows) if row.guidance > 1]
        if self.together != rows:
            self.together = list(rows)
            self.texts = np.stack([self.without_prompt for _ in guided] + [row.text for row in rows])
        latents = np.stack([row.latents for row in rows])
        timestep, signal, noise, of_latents, of_original, of_earlier = (
            np.array(values, np.float32).reshape(-1, 1, 1, 1)
            for values in zip(*(row.coefficients[row.done] for row in rows))
        )
        timesteps = timestep.reshape(-1).astype(np.int64)
        feeds = {
            "sample": np.concatenate([latents[guided], latents]),
            "timestep": np.concatenate([timesteps[guided], timesteps]),
            "encoder_hidden_states": self.texts,
        }
        (output,) = self.unet.run(["out_sample"], feeds)
        without, velocity = output[: len(guided)], output[len(guided) :]
        scale = np.array([rows[at].guidance for at in guided], np.float32).reshape(-1, 1, 1, 1)
        velocity[guided] = without + scale * (velocity[guided] - without)
        original = signal * latents - noise * velocity
        earlier = np.stack([row.earlier for row in rows])
        latents = of_latents * latents + of_original * original + of_earlier * earlier
        for at, row in enumerate(rows):
            row.latents, row.earlier, row.done = latents[at], original[at], row.done + 1
        self.counter[0] += len(rows)

    def finish(self, rows):
        """PNG files of finished rows."""
        latents = np.stack([row.latents for row in rows]) / self.scaling
        (decoded,) = self.decoder.run(["sample"], {"latent_sample": latents})
        pixels = np.rint(np.clip(decoded / 2 + 0.5, 0, 1) * 255).astype(np.uint8).transpose(0, 2, 3, 1)
        return [png_of(each) for each in pixels]

    def paint_groups(self, requests):
        """A batch as pipelines take it: requests with equal parameters together, one group after the other."""
        parameters = lambda at: (requests[at]["steps"], requests[at]["guidance"], requests[at]["width"], requests[at]["height"])
        files = [b""] * len(requests)
        for _, group in groupby(sorted(range(len(requests)), key=parameters), parameters):
            places = list(group)
            rows = self.start([requests[at] for at in places])
            for _ in range(rows[0].steps):
                self.step(rows)
            for at, file in zip(places, self.finish(rows)):
                files[at] = file
        return files

    def paint_rows(self, requests):
        """A batch whose rows step together whatever their parameters are, each until it is done."""
        rows = self.start(requests)
        while left := [row for row in rows if row.done < row.steps]:
            self.step(left)
        return self.finish(rows)


def coefficients_of(steps):
    """For each step: timestep; signal and noise of the latents; what the next latents take of these, of x0 and of the x0 before."""
    timesteps = np.round(np.arange(TRAINED_STEPS, 0, -TRAINED_STEPS / steps)).astype(int) - 1
    sigmas = [*SIGMAS[timesteps], 0.0]
    found = []
    for at, timestep in enumerate(timesteps):
        sigma, after = sigmas[at], sigmas[at + 1]
        signal, next_signal = (1 / np.sqrt(each * each + 1) for each in (sigma, after))
        is_second_order = 0 < at < steps - 1
        trend = 0.5 * np.log(sigma / after) / np.log(sigmas[at - 1] / sigma) if is_second_order else 0.0
        of_original = next_signal * (1 - after / sigma)
        of_latents = after * next_signal / (sigma * signal)
        found.append((timestep, signal, sigma * signal, of_latents, of_original * (1 + trend), -of_original * trend))
    return found


def noise_of(seed, shape):
    """torch.randn of a generator with this seed: 24 bits of each word of a Mersenne Twister, by Box and Muller in blocks of 16."""
    twister = np.random.MT19937()
    twister._legacy_seeding(seed)
    uniform = (twister.random_raw(int(np.prod(shape))) & 0xFFFFFF).astype(np.float32) * np.float32(2**-24)
    first, second = uniform.reshape(-1, 2, 8).transpose(1, 0, 2)
    radius = np.sqrt(-2 * np.log(1 - first))
    angle = np.float32(2 * np.pi) * second
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(shape).astype(np.float32)


def open_session(file):
    """As Darkroom opens it: threads that spin while they wait take the cores from the server beside them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["MODEL_THREADS"])
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def open_tokenizer(directory):
    """CLIP's, of vocab.json and merges.txt."""
    vocabulary = json.loads((directory / "vocab.json").read_text())
    start, end = "<|startoftext|>", "<|endoftext|>"
    merges = [tuple(line.split()) for line in (directory / "merges.txt").read_text().splitlines()[1:] if line]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token=end, end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(words, "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    marks = [(start, vocabulary[start]), (end, vocabulary[end])]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}", special_tokens=marks)
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding(length=TOKENS, pad_id=vocabulary[end], pad_token=end)
    return tokenizer


def png_of(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
