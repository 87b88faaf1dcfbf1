"""How the products of a decoder's graph are written: in float, in 4 bits, or in 8 bits with integers.

A product of integers is exact, so a row has the same bits in it in any company; and a CPU with AMX or VNNI does eight
rows in about the time of one. For that each row of activations is made int8 with one scale, and so is each row of the
weights. Few numbers may be much larger than the others of their row then, so rows are turned first (QuaRot, Ashkboos
et al., 2024): what one channel has is spread over all. In the residual stream that costs nothing, since the weights
before and after it are turned, too. Rows that go back into the stream are turned by a node.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from onnx import TensorProto, numpy_helper

from export_model.graph_writer import GraphWriter

_BLOCK = 32
"""Numbers that share a scale, of 4 bits."""
_INTEGER_KERNELS = 4
"""MatMulNBits' accuracy_level: int8.py says why."""
_TURNED = 128
"""Numbers that are turned together, at most, where a node does it."""


@dataclass(frozen=True)
class Product:
    """A matrix `[outputs, inputs]` with a name of its own."""

    name: str
    weight: np.ndarray


class Products(Protocol):
    """A way to write them."""

    turns: bool
    """Whether the residual stream is to be turned."""

    def table(self, writer: GraphWriter, name: str, table: np.ndarray, ids: str) -> str:
        """Rows of a table of embeddings."""
        ...

    def multiply(self, writer: GraphWriter, rows: str, products: list[Product]) -> list[str]:
        """The products of the same rows, `[rows, inputs]`."""
        ...

    def multiply_inner(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """The product of rows that may have numbers much larger than the others."""
        ...

    def multiply_heads(self, writer: GraphWriter, rows: str, product: Product, width: int) -> str:
        """The product of rows whose heads, `width` numbers each, were turned by the products before if `turns`."""
        ...

    def multiply_last(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """The logits."""
        ...


class FloatProducts:
    """Float32."""

    turns = False

    def table(self, writer: GraphWriter, name: str, table: np.ndarray, ids: str) -> str:
        """As `Products` says."""
        return writer.op("Gather", [writer.constant(name, table.astype(np.float32)), ids])

    def multiply(self, writer: GraphWriter, rows: str, products: list[Product]) -> list[str]:
        """As `Products` says."""
        return [
            writer.op("MatMul", [rows, writer.constant(name, weight.T.astype(np.float32))])
            for name, weight in ((each.name, each.weight) for each in products)
        ]

    def multiply_inner(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """As `Products` says."""
        return self.multiply(writer, rows, [product])[0]

    def multiply_heads(self, writer: GraphWriter, rows: str, product: Product, width: int) -> str:
        """As `Products` says."""
        return self.multiply(writer, rows, [product])[0]

    def multiply_last(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """Turned when the graph is loaded: a table that is tied is written once."""
        table = writer.constant(product.name, product.weight.astype(np.float32))
        return writer.op("MatMul", [rows, writer.op("Transpose", [table], perm=[1, 0])])


class RowProducts:
    """Int8, exact, with a scale for each row and each output."""

    turns = True
    _zeros: str | None = None

    def table(self, writer: GraphWriter, name: str, table: np.ndarray, ids: str) -> str:
        """As `Products` says. A graph begins with it."""
        self._zeros = None
        values, scales = _whole_rows(table)
        row = writer.op("Gather", [writer.constant(f"{name}_int8", values), ids])
        scale = writer.op("Gather", [writer.constant(f"{name}_scales", scales), ids])
        return writer.op("Mul", [writer.op("Cast", [row], to=TensorProto.FLOAT), scale])

    def multiply(self, writer: GraphWriter, rows: str, products: list[Product]) -> list[str]:
        """As `Products` says."""
        largest = writer.op("ReduceMax", [writer.op("Abs", [rows]), writer.whole(-1)], keepdims=1)
        scale = writer.op("Mul", [largest, writer.constant("part", np.float32(1 / 127))])
        scales = writer.op("Reshape", [scale, writer.whole(-1)])
        whole = writer.op("QuantizeLinear", [rows, scales, self._zeros_of(writer, scales)], axis=0)
        return [self._multiply_whole(writer, whole, scale, product) for product in products]

    def multiply_inner(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """As `Products` says."""
        inputs = product.weight.shape[1]
        side = math.gcd(inputs, _TURNED)
        blocks = writer.op("Reshape", [rows, writer.whole(-1, side)])
        blocks = writer.op("MatMul", [blocks, writer.constant(f"turn_{side}", hadamard(side).astype(np.float32))])
        rows = writer.op("Reshape", [blocks, writer.whole(-1, inputs)])
        return self.multiply_heads(writer, rows, product, side)

    def multiply_heads(self, writer: GraphWriter, rows: str, product: Product, width: int) -> str:
        """As `Products` says."""
        turned = turn_inputs(product.weight, width) if self.turns else product.weight
        return self.multiply(writer, rows, [Product(product.name, turned)])[0]

    def multiply_last(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """Of fewer rows than the others."""
        self._zeros = None
        return self.multiply(writer, rows, [product])[0]

    def _zeros_of(self, writer: GraphWriter, scales: str) -> str:
        """A zero point for each row: one tensor for all products of as many rows."""
        if self._zeros is None:
            zeros = numpy_helper.from_array(np.array([128], np.uint8))
            self._zeros = writer.op("ConstantOfShape", [writer.op("Shape", [scales])], value=zeros)
        return self._zeros

    def _multiply_whole(self, writer: GraphWriter, whole: str, scale: str, product: Product) -> str:
        values, scales = _whole_rows(product.weight)
        inputs = [
            whole,
            writer.constant(f"{product.name}_int8", values.T),
            writer.constant("one", np.float32(1)),
            writer.constant(f"{product.name}_scales", scales[:, 0]),
            writer.constant("zero", np.uint8(128)),
        ]
        return writer.op("Mul", [writer.op("ms.MatMulIntegerToFloat", inputs), scale])


class FourBitProducts(RowProducts):
    """4 bits with a zero and a scale for each block; the table and the logits have 8 bits."""

    turns = False

    def multiply(self, writer: GraphWriter, rows: str, products: list[Product]) -> list[str]:
        """As `Products` says."""
        return [self._multiply_blocks(writer, rows, product) for product in products]

    def multiply_inner(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """As `Products` says."""
        return self._multiply_blocks(writer, rows, product)

    def multiply_last(self, writer: GraphWriter, rows: str, product: Product) -> str:
        """As `Products` says."""
        return self._multiply_blocks(writer, rows, product, bits=8)

    def _multiply_blocks(self, writer: GraphWriter, rows: str, product: Product, bits: int = 4) -> str:
        outputs, inputs = product.weight.shape
        size = {"K": inputs, "N": outputs, "bits": bits, "block_size": _BLOCK, "accuracy_level": _INTEGER_KERNELS}
        padded = np.pad(product.weight, ((0, 0), (0, -inputs % _BLOCK))).reshape(outputs, -1, _BLOCK)
        values, scales, zeros = _blocks_of_4(padded) if bits == 4 else _blocks_of_8(padded)
        names = {"q": values, "s": scales.astype(np.float32), **({} if zeros is None else {"z": zeros})}
        weights = [writer.constant(f"{product.name}_{key}{bits}", array) for key, array in names.items()]
        return writer.op("ms.MatMulNBits", [rows, *weights], **size)


def hadamard(size: int) -> np.ndarray:
    """An orthogonal matrix with about equally large numbers: Hadamard's, times a cosine transform of the odd part."""
    matrix = np.ones((1, 1))
    while size % (2 * len(matrix)) == 0:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]]) / math.sqrt(2)
    odd = size // len(matrix)
    place = np.arange(odd)
    cosines = np.cos(math.pi / odd * (place[None] + 0.5) * place[:, None]) * math.sqrt(2 / odd)
    cosines[0] /= math.sqrt(2)
    signs = np.where(np.random.default_rng(0).random(size) < 0.5, -1.0, 1.0)
    return (np.kron(matrix, cosines) * signs).T


def turn_inputs(weight: np.ndarray, width: int) -> np.ndarray:
    """A matrix `[outputs, inputs]` for rows of which each `width` numbers were turned."""
    return (weight.reshape(len(weight), -1, width) @ hadamard(width)).reshape(weight.shape)


def turn_outputs(weight: np.ndarray, width: int) -> np.ndarray:
    """A matrix `[outputs, inputs]`, or a bias `[outputs]`, that gives each `width` numbers turned."""
    return (hadamard(width).T @ weight.reshape(-1, width, weight[0].size)).reshape(weight.shape)


def _whole_rows(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Int8 values and the scale of each row, `[rows, 1]`."""
    scale = np.abs(weight).max(1, keepdims=True) / 127
    scale[scale == 0] = 1
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def _blocks_of_8(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, None]:
    scale = np.abs(blocks).max(-1, keepdims=True) / 127
    scale[scale == 0] = 1
    return np.clip(np.rint(blocks / scale) + 128, 0, 255).astype(np.uint8), scale[..., 0], None


def _blocks_of_4(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low = np.minimum(blocks.min(-1, keepdims=True), 0)
    scale = (np.maximum(blocks.max(-1, keepdims=True), 0) - low) / 15
    scale[scale == 0] = 1
    zero = np.clip(np.rint(-low / scale), 0, 15)
    values = np.clip(np.rint(blocks / scale) + zero, 0, 15).astype(np.uint8)
    zeros = zero[..., 0].astype(np.uint8)
    zeros = np.pad(zeros, ((0, 0), (0, zeros.shape[1] % 2)))
    return _pairs(values), scale[..., 0], _pairs(zeros)


def _pairs(values: np.ndarray) -> np.ndarray:
    return values[..., 0::2] | (values[..., 1::2] << 4)
