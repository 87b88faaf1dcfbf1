"""Records what transformers' logits processors leave of logits, and numbers of xoshiro128**.

    pip install transformers==5.23.0 torch==2.15.0 onnxruntime==1.31.1
    python tools/golden/record-sampling.py

The logits are the embedded writer's, after a few beginnings.
"""

import base64
import json
import pathlib

import numpy as np
import onnxruntime
import torch
import transformers
from tokenizers import Tokenizer
from transformers.generation import logits_process as processors

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITER = ROOT / "models/emoji-writer"
VECTORS = ROOT / "tools/golden/vectors/sampling.json"
PROMPTS = [
    "<|im_start|>user\nsomething sweet for a birthday party<|im_end|>\n<|im_start|>assistant\na",
    "<|im_start|>user\nan animal<|im_end|>\n<|im_start|>assistant\na big",
    "<|im_start|>user\nhello",
]
OPTIONS = [
    {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.0},
    {"temperature": 0.3, "topK": 0, "topP": 1.0, "minP": 0.0},
    {"temperature": 1.0, "topK": 50, "topP": 1.0, "minP": 0.0},
    {"temperature": 1.0, "topK": 1, "topP": 1.0, "minP": 0.0},
    {"temperature": 1.0, "topK": 0, "topP": 0.9, "minP": 0.0},
    {"temperature": 2.0, "topK": 0, "topP": 0.95, "minP": 0.0},
    {"temperature": 1.0, "topK": 0, "topP": 0.001, "minP": 0.0},
    {"temperature": 0.7, "topK": 50, "topP": 0.9, "minP": 0.0},
    {"temperature": 1.5, "topK": 0, "topP": 1.0, "minP": 0.05},
    {"temperature": 1.2, "topK": 100, "topP": 0.98, "minP": 0.02},
]
BIAS = {5: 3.5, 300: -2.25, 1200: -100.0}


def logits_of(session, ids):
    past = {i.name: np.zeros((1, 2, 0, 32), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    feed = {
        "input_ids": np.array([ids], np.int64),
        "attention_mask": np.ones((1, len(ids)), np.int64),
        "position_ids": np.arange(len(ids))[None].astype(np.int64),
    }
    return session.run(["logits"], {**feed, **past})[0][0, -1]


def left_of(logits, options):
    scores = torch.from_numpy(logits)[None]
    steps = []
    if options["temperature"] != 1:
        steps.append(processors.TemperatureLogitsWarper(options["temperature"]))
    if options["topK"] > 0:
        steps.append(processors.TopKLogitsWarper(options["topK"]))
    if options["topP"] < 1:
        steps.append(processors.TopPLogitsWarper(options["topP"]))
    if options["minP"] > 0:
        steps.append(processors.MinPLogitsWarper(options["minP"]))
    for step in steps:
        scores = step(torch.zeros((1, 0), dtype=torch.long), scores)
    kept = torch.isfinite(scores[0]).nonzero()[:, 0]
    probabilities = torch.softmax(scores[0].double(), -1)[kept]
    heaviest = torch.argsort(probabilities, descending=True, stable=True)[:20]
    return {
        **options,
        "ids": kept.tolist() if len(kept) < len(logits) else None,
        "probabilities": [[int(kept[at]), round(float(probabilities[at]), 9)] for at in heaviest],
    }


def xoshiro(state, count):
    """As published, in whole numbers of any size."""
    word = 2**32 - 1
    rotate = lambda x, k: ((x << k) | (x >> (32 - k))) & word
    s = list(state)
    numbers = []
    for _ in range(count):
        numbers.append(rotate(s[1] * 5 & word, 7) * 9 & word)
        t = s[1] << 9 & word
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 11)
    return numbers


def main():
    tokenizer = Tokenizer.from_file(str(WRITER / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(WRITER / "onnx/model_int8.onnx"), providers=["CPUExecutionProvider"])
    cases = []
    for prompt in PROMPTS:
        logits = logits_of(session, tokenizer.encode(prompt, add_special_tokens=False).ids)
        bias = processors.SequenceBiasLogitsProcessor([[[id], value] for id, value in BIAS.items()])
        biased = bias(torch.zeros((1, 1), dtype=torch.long), torch.from_numpy(logits)[None])[0]
        logprobs = torch.log_softmax(biased.double(), -1)
        best = torch.argsort(logprobs, descending=True, stable=True)[:5]
        cases.append(
            {
                "logits": base64.b64encode(logits.tobytes()).decode(),
                "bias": BIAS,
                "logprobs": [[int(at), round(float(logprobs[at]), 7)] for at in best],
                "kept": [left_of(logits, options) for options in OPTIONS],
            }
        )
    record = {
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]},
        "xoshiro": {"state": [1, 2, 3, 4], "words": xoshiro([1, 2, 3, 4], 20)},
        "cases": cases,
    }
    VECTORS.write_text(json.dumps(record, separators=(",", ":")) + "\n")


main()
