"""python export.py <checkpoint> <model>: see README.md."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from export_model.checkpoint import Checkpoint, read_checkpoint
from export_model.graphs import Exported, export_graphs
from export_model.int8 import quantize_graph
from export_model.layout import copy_files
from loras import add_loras
from previews import say_preview

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Exports, then has Darkroom make images with what came of it."""
    arguments = _read_arguments()
    checkpoint = read_checkpoint(arguments.checkpoint)
    target: Path = arguments.model
    if target.exists():
        raise SystemExit(f"{target} is there already: remove it, or give another name")
    for name in checkpoint.unused:
        print(f"{name}: left out, no image from a prompt needs it", flush=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    export(checkpoint, partial, arguments.variant)
    say_preview(partial)
    if arguments.loras:
        add_loras(partial)
    partial.rename(target)
    words = ["compare", target.resolve(), "--prompts", str(arguments.prompts)]
    if arguments.prompts == 0:
        words = ["check", target.resolve()]
    # From here on Darkroom speaks: npm run model.
    sys.exit(subprocess.run(["node", "tools/model.mjs", *words], cwd=_ROOT, check=False).returncode)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A diffusers checkpoint as ONNX files in fp32, fp16 and INT8.")
    parser.add_argument("checkpoint", type=Path, help="a directory as save_pretrained writes it")
    parser.add_argument("model", type=Path, help="the directory to be made, such as ../../models/photo")
    parser.add_argument("--variant", help="of the checkpoint's files, such as fp16 for *.fp16.safetensors")
    parser.add_argument(
        "--prompts", type=int, default=32, help="images that are compared; 0: the model is loaded only"
    )
    parser.add_argument("--loras", action="store_true", help="a graph that takes adapters beside each of the denoiser")
    return parser.parse_args()


def export(checkpoint: Checkpoint, target: Path, variant: str | None) -> None:
    """Writes the model into `target`, which is there and empty; `variant` is that of the checkpoint's files."""
    copy_files(checkpoint, target)
    for exported in export_graphs(checkpoint, target, "fp32", variant):
        _say(exported)
        file = exported.file.with_name("model_int8.onnx")
        quantized = quantize_graph(exported.file, file)
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(quantized.counts.items()))
        _say(Exported(exported.part, file), f"weights of {kinds}")
        for name, numbers in quantized.left.items():
            print(f"  stays float: {name}, {numbers} numbers", flush=True)
    for exported in export_graphs(checkpoint, target, "fp16", variant):
        _say(exported)


def _say(exported: Exported, what: str = "") -> None:
    size = sum(file.stat().st_size for file in exported.file.parent.glob(f"{exported.file.name}*"))
    print(f"{exported.part}/{exported.file.name}: {size / 1e6:.1f} MB{what and ', '}{what}", flush=True)


if __name__ == "__main__":
    main()
