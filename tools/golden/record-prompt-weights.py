"""Records embeddings of weighted and long prompts by compel, for the tests of libs/diffusion; after record-pipelines.py.

    pip install torch==2.15.0 transformers==5.23.0 diffusers==0.42.1 onnxruntime==1.31.1 compel==2.5.1
    python tools/golden/record-prompt-weights.py

Recorded with Python 3.11 on the CPU, into vectors/prompt-weights.json. compel has another syntax than Stable Diffusion web UI, so each
case has the prompt in ours, and the parts with their weights, which compel gets. The text encoder is the ONNX graph of
vectors/pipelines/stable-diffusion-2. Recorded are, of each prompt, the embeddings of some tokens (float32, base64, little-endian).
"""

import base64
import json
import pathlib
from types import SimpleNamespace

import numpy as np
import onnxruntime
import torch
from compel.embeddings_provider import EmbeddingsProvider, SplitLongTextMode
from transformers import CLIPTokenizer

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE / "vectors/pipelines/stable-diffusion-2/model"
LONG = ", ".join(f"a red apple number {number} on a white background" for number in range(12))
CASES = [
    ("a (red:1.3) apple", [("a ", 1), ("red", 1.3), (" apple", 1)]),
    ("a [red] ((apple)) (on:0.5) a", [("a ", 1), ("red", 1 / 1.1), (" ", 1), ("apple", 1.1**2), (" ", 1), ("on", 0.5), (" a", 1)]),
    ("(red:-1) apple", [("red", -1), (" apple", 1)]),
    (LONG, [(LONG, 1)]),
    (f"{LONG}, (sky:1.5)", [(f"{LONG}, ", 1), ("sky", 1.5)]),
]


class Encoder:
    """Runs the graph in the way in which compel calls transformers' CLIPTextModel."""

    def __init__(self):
        self.session = onnxruntime.InferenceSession(MODEL / "text_encoder/model.onnx")
        self.input = self.session.get_inputs()[0]
        self.device, self.dtype = torch.device("cpu"), torch.float32

    def __call__(self, ids, _mask, **_options):
        kind = np.int32 if "int32" in self.input.type else np.int64
        outputs = self.session.run(["last_hidden_state"], {self.input.name: ids.numpy().astype(kind)})
        return SimpleNamespace(last_hidden_state=torch.from_numpy(outputs[0]))


def record() -> None:
    provider = EmbeddingsProvider(
        CLIPTokenizer.from_pretrained(MODEL / "tokenizer"),
        Encoder(),
        truncate=False,
        split_long_text_mode=SplitLongTextMode.BRUTAL,
        device="cpu",
    )
    cases = []
    for prompt, parts in CASES:
        ids, weights, _ = provider.get_token_ids_and_expand_weights([text for text, _ in parts], [weight for _, weight in parts], "cpu")
        embedding = provider.build_weighted_embedding_tensor(ids, weights).numpy()[0]
        # The first tokens of each chunk, and the last tokens.
        rows = sorted({at + offset for at in range(0, len(ids), 77) for offset in range(8)} | set(range(len(ids) - 77, len(ids), 9)))
        values = base64.b64encode(embedding[rows].astype("<f4").tobytes()).decode()
        cases.append({"prompt": prompt, "tokens": len(ids), "rows": rows, "values": values})
    (HERE / "vectors/prompt-weights.json").write_text(json.dumps({"model": "stable-diffusion-2", "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    record()
