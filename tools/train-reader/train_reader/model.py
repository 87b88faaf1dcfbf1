"""A LLaVA: CLIP's vision transformer, two layers that translate, and train-writer's Llama."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from train_writer.model import Network, Shape

from train_reader.images import READ_SIDE
from train_reader.tokenizer import IMAGE


@dataclass(frozen=True)
class VisionShape:
    """The sizes of the vision transformer."""

    side: int = READ_SIDE
    patch: int = 16
    width: int = 160
    layers: int = 4
    heads: int = 5
    hidden: int = 480
    epsilon: float = 1e-5

    @property
    def patches(self) -> int:
        """Patches of an image, which are its tokens."""
        return (self.side // self.patch) ** 2


def quick_gelu(x: torch.Tensor) -> torch.Tensor:
    """CLIP's activation."""
    return x * torch.sigmoid(1.702 * x)


class VisionLayer(nn.Module):
    """Attention among all patches, then two linear layers; each behind a norm."""

    def __init__(self, shape: VisionShape) -> None:
        super().__init__()
        self.shape = shape
        self.norm1 = nn.LayerNorm(shape.width, shape.epsilon)
        self.query, self.key, self.value, self.output = (nn.Linear(shape.width, shape.width) for _ in range(4))
        self.norm2 = nn.LayerNorm(shape.width, shape.epsilon)
        self.up, self.down = nn.Linear(shape.width, shape.hidden), nn.Linear(shape.hidden, shape.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[images, tokens, width] → the same."""
        y = self.norm1(x)
        heads = [part(y).unflatten(-1, (self.shape.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        x = x + self.output(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        return x + self.down(quick_gelu(self.up(self.norm2(x))))


class Vision(nn.Module):
    """CLIP's vision transformer without its last norm: [images, 3, side, side] → [images, patches, width]."""

    def __init__(self, shape: VisionShape) -> None:
        super().__init__()
        self.shape = shape
        self.patch_embedding = nn.Conv2d(3, shape.width, shape.patch, shape.patch, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.position_embedding = nn.Parameter(torch.randn(shape.patches + 1, shape.width) * 0.02)
        self.norm = nn.LayerNorm(shape.width, shape.epsilon)
        self.layers = nn.ModuleList(VisionLayer(shape) for _ in range(shape.layers))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """The patches, without the class token."""
        x = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_embedding.expand(len(x), 1, -1).to(x.dtype), x], 1) + self.position_embedding
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x[:, 1:]


class Reader(nn.Module):
    """Images and tokens in, logits out."""

    def __init__(self, vision: VisionShape, text: Shape) -> None:
        super().__init__()
        self.vision = Vision(vision)
        self.projector1 = nn.Linear(vision.width, text.width)
        self.projector2 = nn.Linear(text.width, text.width)
        self.text = Network(text)

    def encode_images(self, pixels: torch.Tensor) -> torch.Tensor:
        """[images, 3, side, side] → [images, patches, width of the text]."""
        return self.projector2(quick_gelu(self.projector1(self.vision(pixels))))

    def forward(
        self, pixels: torch.Tensor, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, wanted: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The logits; each row has one image, at the tokens IMAGE. See `Network.forward`."""
        x = self.text.embedding(ids)
        x = x.masked_scatter((ids == IMAGE)[..., None], self.encode_images(pixels).to(x.dtype))
        return self.text.read(x, positions, mask, wanted)
