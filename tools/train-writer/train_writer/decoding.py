"""Writes with a model's directory: its ONNX file alone, greedily, many chats at once."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import jinja2
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

Message = tuple[str, str]
"""Role and text."""

_ROWS = 32


@dataclass
class Effort:
    """What the answers of block diffusion took, so far."""

    calls: list[int] = field(default_factory=list)
    """Of the network, after the prompt, for each answer."""
    tokens: list[int] = field(default_factory=list)

    def calls_per_token(self) -> float:
        """Of all answers together."""
        return sum(self.calls) / max(1, sum(self.tokens))


class Writer:
    """A model in either way of writing; which, its config.json says."""

    def __init__(self, directory: Path, weights: str, threads: int = 1) -> None:
        self._config = json.loads((directory / "config.json").read_text())
        self._limit = json.loads((directory / "generation_config.json").read_text())["max_new_tokens"]
        template = json.loads((directory / "tokenizer_config.json").read_text())["chat_template"]
        self._template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False).from_string(template)
        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        file = "model.onnx" if weights == "fp32" else f"model_{weights}.onnx"
        self._session = onnxruntime.InferenceSession(directory / "onnx" / file, options, providers=["CPUExecutionProvider"])
        self.effort = Effort()

    @property
    def is_diffusion(self) -> bool:
        """Whether it writes block by block."""
        return self._config["model_type"] == "block_diffusion"

    def encode(self, messages: list[Message]) -> list[int]:
        """The prompt of a chat."""
        shown = [{"role": role, "content": text} for role, text in messages]
        text = self._template.render(messages=shown, add_generation_prompt=True)
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def answer(self, chats: list[list[Message]]) -> list[str]:
        """What it says to each."""
        found = []
        for at in range(0, len(chats), _ROWS):
            prompts = [self.encode(chat) for chat in chats[at : at + _ROWS]]
            written = self._write_blocks(prompts) if self.is_diffusion else self._write_tokens(prompts)
            found += [self._tokenizer.decode(tokens, skip_special_tokens=True) for tokens in written]
        return found

    def _call(self, ids: np.ndarray, mask: np.ndarray, positions: np.ndarray, past: list[np.ndarray] | None) -> tuple:
        """Logits and present: [batch, length, vocabulary], and for each layer keys and values."""
        layers, heads, width = (self._config[name] for name in ("num_hidden_layers", "num_key_value_heads", "head_dim"))
        past = past or [np.zeros((len(ids), heads, 0, width), np.float32)] * (2 * layers)
        names = [f"past_key_values.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
        feed = dict(zip(names, past, strict=True)) | {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        logits, *present = self._session.run(None, feed)
        return logits, present

    def _read(self, prompts: list[list[int]]) -> tuple:
        """Logits, present and mask after the prompts, padded on the left."""
        longest = max(map(len, prompts))
        pads = [longest - len(prompt) for prompt in prompts]
        ids = np.array([[0] * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)])
        mask = np.array([[0] * pad + [1] * (longest - pad) for pad in pads])
        positions = np.maximum(np.arange(longest)[None] - np.array(pads)[:, None], 0)
        return *self._call(ids, mask, positions, None), mask

    def _write_tokens(self, prompts: list[list[int]]) -> list[list[int]]:
        logits, past, mask = self._read(prompts)
        end = self._config["eos_token_id"]
        written = np.zeros((len(prompts), 0), np.int64)
        lengths = np.array([[len(prompt)] for prompt in prompts])
        while True:
            written = np.concatenate([written, logits[:, -1].argmax(-1)[:, None]], 1)
            if (written == end).any(1).all() or written.shape[1] == self._limit:
                return [_until(row.tolist(), end) for row in written]
            mask = np.pad(mask, ((0, 0), (0, 1)), constant_values=1)
            logits, past = self._call(written[:, -1:], mask, lengths + written.shape[1] - 1, past)

    def _write_blocks(self, prompts: list[list[int]]) -> list[list[int]]:
        """Low-confidence remasking: what is sure enough is committed, the surest in any case."""
        _, past, mask = self._read(prompts)
        size, masked, end = (self._config[name] for name in ("block_size", "mask_token_id", "eos_token_id"))
        rows = np.arange(len(prompts))
        calls, written = np.zeros(len(prompts), int), np.zeros((len(prompts), 0), np.int64)
        done = np.zeros(len(prompts), bool)
        while not done.all() and written.shape[1] < self._limit:
            mask = np.pad(mask, ((0, 0), (0, size)), constant_values=1)
            positions = np.array([[len(prompt)] for prompt in prompts]) + written.shape[1] + np.arange(size)
            block = np.where(done[:, None], end, np.full((len(prompts), size), masked))
            settled = done.copy()
            while not settled.all():
                logits, _ = self._call(block, mask, positions, past)
                logits[..., masked] = -np.inf
                powers = np.exp(logits - logits.max(-1, keepdims=True))
                best, sureness = logits.argmax(-1), 1 / powers.sum(-1)
                hidden = (block == masked) & ~settled[:, None]
                take = hidden & (sureness >= self._config["confidence_threshold"])
                surest = np.where(hidden, sureness, -1).argmax(1)
                take[rows, surest] |= hidden.any(1) & ~take.any(1)
                block = np.where(take, best, block)
                calls += ~settled
                ended = np.array([_is_ended(row.tolist(), end, masked) for row in block])
                done |= ended & ~settled
                settled |= ended | ~(block == masked).any(1)
            written = np.concatenate([written, block], 1)
            if not done.all():
                _, past = self._call(np.where(block == masked, end, block), mask, positions, past)
                calls += ~done
        answers = [_until(row.tolist(), end) for row in written]
        self.effort.calls += calls.tolist()
        self.effort.tokens += [len(answer) for answer in answers]
        return answers


def _until(tokens: list[int], end: int) -> list[int]:
    return tokens[: tokens.index(end) + 1] if end in tokens else tokens


def _is_ended(tokens: list[int], end: int, masked: int) -> bool:
    return end in tokens and masked not in tokens[: tokens.index(end)]
