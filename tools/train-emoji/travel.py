#!/usr/bin/env python3
"""Takes a run from one machine to another in a few small files: `pack` there, `unpack` here. See README.md.

What stages have finished travels whole. An unfinished stage loses its optimizer's memory and starts again from its
averaged weights, at the step it had reached. Cached latents stay behind, they are made again in seconds.
"""

import argparse
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load, save

_PART_BYTES = 15 * 2**20
_MOST_BYTES = 62 * 2**20

Tensors = dict[str, torch.Tensor]


def pack(run: Path, target: Path, *, half: bool) -> None:
    """Writes run.tar.0, run.tar.1, … of at most 15 MiB each into `target`.

    Raises:
        SystemExit: it is more than 62 MiB in all.
    """
    archive = io.BytesIO()
    convert = _to_half if half else dict
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(run.rglob("*")):
            within = path.relative_to(run)
            if path.is_file() and path.name != "latents.pt" and ".partial" not in str(within):
                content = _lighten(path, convert)
                entry = tarfile.TarInfo(str(within))
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    packed = archive.getbuffer()
    if len(packed) > _MOST_BYTES:
        advice = "" if half else ": take --half"
        raise SystemExit(f"{run} packed is {len(packed) / 2**20:.1f} MiB, more than {_MOST_BYTES // 2**20}{advice}")
    target.mkdir(parents=True, exist_ok=True)
    for number, at in enumerate(range(0, len(packed), _PART_BYTES)):
        (target / f"run.tar.{number}").write_bytes(packed[at : at + _PART_BYTES])
    print(f"{len(packed) / 2**20:.1f} MiB in {number + 1} files")


def unpack(source: Path, run: Path) -> None:
    """Makes the run's folder from the files of `pack`; weights at half precision get their width back.

    Raises:
        SystemExit: there are none, or the folder exists.
    """
    parts = sorted(source.glob("run.tar.*"), key=lambda path: int(path.suffix[1:]))
    if not parts:
        raise SystemExit(f"{source} has no run.tar.0")
    if run.exists():
        raise SystemExit(f"{run} exists: unpack into a new folder")
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as tar:
        tar.extractall(run, filter="data")
    for path in [*run.rglob("*.safetensors"), *run.glob("*.checkpoint")]:
        path.write_bytes(_lighten(path, _to_single))


def _lighten(path: Path, convert: Callable[[Tensors], Tensors]) -> bytes:
    if path.suffix == ".safetensors":
        return save(convert(load(path.read_bytes())), metadata={"format": "pt"})
    if path.suffix == ".checkpoint":
        state = torch.load(path, map_location="cpu", weights_only=True)
        light = {"stage": state["stage"], "step": state["step"], "averaged": convert(state["averaged"])}
        buffer = io.BytesIO()
        torch.save(light, buffer)
        return buffer.getvalue()
    return path.read_bytes()


def _to_half(tensors: Tensors) -> Tensors:
    return {name: value.half() if value.dtype == torch.float32 else value for name, value in tensors.items()}


def _to_single(tensors: Tensors) -> Tensors:
    return {name: value.float() if value.dtype == torch.float16 else value for name, value in tensors.items()}


def main() -> None:
    """Packs or unpacks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("run", type=Path)
    packing.add_argument("target", type=Path)
    packing.add_argument("--half", action="store_true", help="weights at half precision: for wide models")
    unpacking = commands.add_parser("unpack")
    unpacking.add_argument("source", type=Path)
    unpacking.add_argument("run", type=Path)
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.run, options.target, half=options.half)
    else:
        unpack(options.source, options.run)


if __name__ == "__main__":
    main()
