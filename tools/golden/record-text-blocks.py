"""Records what the embedded block-diffusion writer writes: low-confidence remasking as SDAR's, with blocks after the prompt, in
onnxruntime from Python, each wish alone.

    pip install onnxruntime==1.31.1 tokenizers==0.23.3
    python tools/golden/record-text-blocks.py
"""

import json
import pathlib

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITER = ROOT / "models/emoji-writer-diffusion"
GREEDY = ROOT / "tools/golden/vectors/emoji-writer-greedy.json"
VECTORS = ROOT / "tools/golden/vectors/emoji-writer-diffusion-greedy.json"
END, MASK, BLOCK, LAYERS = 2, 3, 8, 4


class Model:
    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = str(WRITER / "onnx/model_int8.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def __call__(self, ids, past):
        length = past[0].shape[2]
        names = [f"past_key_values.{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
        feed = dict(zip(names, past))
        feed["input_ids"] = np.array([ids], np.int64)
        feed["attention_mask"] = np.ones((1, length + len(ids)), np.int64)
        feed["position_ids"] = np.arange(length, length + len(ids))[None].astype(np.int64)
        outputs = self.session.run(None, feed)
        return outputs[0][0], outputs[1:]


def write(model, prompt, threshold, static, limit):
    _, past = model(prompt, [np.zeros((1, 2, 0, 32), np.float32)] * (2 * LAYERS))
    tokens, calls, blocks = [], 0, []
    while True:
        block = np.full(min(BLOCK, limit - len(tokens)), MASK)
        while True:
            calls += 1
            padded = np.concatenate([block, np.full(BLOCK - len(block), MASK)])
            logits, _ = model(padded.tolist(), past)
            logits = logits[: len(block)].astype(np.float64)
            logits[:, MASK] = -np.inf
            weights = np.exp(logits - logits.max(-1, keepdims=True))
            probabilities = weights / weights.sum(-1, keepdims=True)
            best, confidence = probabilities.argmax(-1), probabilities.max(-1)
            masked = block == MASK
            if static:
                order = np.argsort(np.where(masked, -confidence, 1), kind="stable")
                take = np.zeros(len(block), bool)
                take[order[:static]] = True
                take &= masked
            else:
                take = masked & (confidence >= threshold)
                if not take.any():
                    take[np.where(masked, confidence, -1).argmax()] = True
            block = np.where(take, best, block)
            blocks.append(block.tolist())
            ends = np.flatnonzero(block == END)
            if len(ends) and not (block[: ends[0]] == MASK).any():
                return tokens + block[: ends[0] + 1].tolist(), calls, blocks
            if not (block == MASK).any():
                break
        tokens += block.tolist()
        if len(tokens) >= limit:
            return tokens, calls, blocks
        calls += 1
        _, past = model(block.tolist(), past)


def main():
    model, tokenizer = Model(), Tokenizer.from_file(str(WRITER / "tokenizer.json"))
    cases = []
    prompts = [case["prompt"] for case in json.loads(GREEDY.read_text())["cases"]]
    settings = [(0.9, 0, 24), (0.5, 0, 24), (0.9, 2, 24), (0.9, 0, 5)]
    for at, prompt in enumerate(prompts):
        for threshold, static, limit in settings if at < 4 else settings[:1]:
            tokens, calls, blocks = write(model, prompt, threshold, static, limit)
            case = {"prompt": prompt, "threshold": threshold, "tokensPerCall": static, "limit": limit}
            text = tokenizer.decode(tokens, skip_special_tokens=True)
            cases.append({**case, "tokens": tokens, "calls": calls, "text": text, "blocks": blocks})
    versions = {"onnxruntime": onnxruntime.__version__}
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    VECTORS.write_text('{"versions": ' + json.dumps(versions) + ', "cases": [\n' + rows + "\n]}\n")
    total = [case for case in cases if case["limit"] == 24 and case["threshold"] == 0.9 and not case["tokensPerCall"]]
    print("calls a token", sum(case["calls"] for case in total) / sum(len(case["tokens"]) for case in total))


main()
