"""A Llama that takes any attention mask: both models are this network, and differ in what a position may look at."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

Cache = list[tuple[torch.Tensor, torch.Tensor]]
"""For each layer keys and values: [batch, key heads, positions, head width]."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a network."""

    vocabulary: int = 4096
    width: int = 192
    layers: int = 4
    heads: int = 6
    key_heads: int = 2
    head_width: int = 32
    hidden: int = 384
    epsilon: float = 1e-5
    theta: float = 10000.0


class Layer(nn.Module):
    """Attention with shared keys, then a gated network; each behind a norm of its own."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
        self.attention_norm = nn.Parameter(torch.ones(shape.width))
        self.query = nn.Linear(shape.width, queries, bias=False)
        self.key = nn.Linear(shape.width, keys, bias=False)
        self.value = nn.Linear(shape.width, keys, bias=False)
        self.output = nn.Linear(queries, shape.width, bias=False)
        self.hidden_norm = nn.Parameter(torch.ones(shape.width))
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: torch.Tensor, turn: "Turn", mask: torch.Tensor, wanted: torch.Tensor | None) -> torch.Tensor:
        """`wanted`: the flat positions whose outcome anybody looks at; None: all."""
        batch, length, _ = x.shape
        y = F.rms_norm(x, x.shape[-1:], self.attention_norm, self.shape.epsilon)
        split = (batch, length, -1, self.shape.head_width)
        query = turn(self.query(y).view(split).transpose(1, 2))
        key = turn(self.key(y).view(split).transpose(1, 2))
        value = self.value(y).view(split).transpose(1, 2)
        # By hand: torch's fused attention takes half of a step at such lengths. The query heads of a key head are rows of one product.
        query = query.reshape(batch, self.shape.key_heads, -1, self.shape.head_width) * self.shape.head_width**-0.5
        scores = (query @ key.transpose(-1, -2)).view(batch, self.shape.key_heads, -1, length, length) + mask
        y = scores.softmax(-1).view(batch, self.shape.key_heads, -1, length) @ value
        y = y.view(batch, self.shape.heads, length, -1).transpose(1, 2).reshape(batch, length, -1)
        if wanted is not None:
            x, y = x.flatten(0, 1)[wanted], y.flatten(0, 1)[wanted]
        x = x + self.output(y)
        y = F.rms_norm(x, x.shape[-1:], self.hidden_norm, self.shape.epsilon)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Turn:
    """Rotary positions, as transformers' Llama has them: the two halves of a head are turned against each other."""

    def __init__(self, positions: torch.Tensor, shape: Shape, dtype: torch.dtype) -> None:
        halves = torch.arange(0, shape.head_width, 2, dtype=torch.float32) / shape.head_width
        angles = positions[:, None, :, None].float() * shape.theta**-halves
        self._cosine, self._sine = angles.cos().to(dtype), angles.sin().to(dtype)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Turns [batch, heads, length, head width]."""
        first, second = x.chunk(2, -1)
        cosine, sine = self._cosine, self._sine
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Network(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.width))
        nn.init.normal_(self.embedding.weight, std=0.02)
        for name, weight in self.layers.named_parameters():
            if weight.dim() == 2:
                into_the_stream = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(weight, std=(0.25 if into_the_stream else 0.5) * weight.shape[1] ** -0.5)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, wanted: torch.Tensor | None = None) -> torch.Tensor:
        """The logits.

        Args:
            ids: [batch, length].
            positions: [batch or 1, length].
            mask: [batch or 1, length, length], true where a row may look at a column.
            wanted: flat positions, the only ones whose logits are computed: [count].

        Returns:
            [count, vocabulary], or [batch, length, vocabulary].
        """
        return self.read(self.embedding(ids), positions, mask, wanted)

    def read(self, x: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, wanted: torch.Tensor | None = None) -> torch.Tensor:
        """The same of embeddings [batch, length, width], of which some may be of an image."""
        turn = Turn(positions, self.shape, x.dtype)
        bias = torch.zeros(mask.shape, dtype=x.dtype).masked_fill_(~mask, -1e9)[:, None, None]
        for at, layer in enumerate(self.layers):
            x = layer(x, turn, bias, wanted if at + 1 == len(self.layers) else None)
        return F.rms_norm(x, x.shape[-1:], self.norm, self.shape.epsilon) @ self.embedding.weight.T
