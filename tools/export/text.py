"""python text.py <directory or GGUF file> <model>: see README.md."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from export_model.decoder import export_decoder, tie_table
from export_model.group_query import is_llama_like, write_group_query
from export_model.int8 import TEXT_INT8, TEXT_Q4, quantize_graph
from export_model.products import FloatProducts, FourBitProducts, RowProducts
from export_model.text_source import TextSource, read_text_source, write_text_files

_ROOT = Path(__file__).resolve().parents[2]
_SCHEMES = {"model_int8.onnx": TEXT_INT8, "model_q4.onnx": TEXT_Q4}
_PRODUCTS = {"model.onnx": FloatProducts(), "model_int8.onnx": RowProducts(), "model_q4.onnx": FourBitProducts()}


def main() -> None:
    """Exports, then has Darkroom write a sentence with what came of it."""
    arguments = _read_arguments()
    target: Path = arguments.model
    if target.exists():
        raise SystemExit(f"{target} is there already: remove it, or give another name")
    source = read_text_source(arguments.source)
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "onnx").mkdir(parents=True)
    export(source, partial)
    partial.rename(target)
    # From here on Darkroom speaks: npm run model.
    words = ["check", target.resolve()]
    sys.exit(subprocess.run(["node", "tools/model.mjs", *words], cwd=_ROOT, check=False).returncode)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A causal language model as ONNX files in fp32, INT8 and 4 bits.")
    parser.add_argument("source", type=Path, help="a directory as save_pretrained writes it, or a GGUF file")
    parser.add_argument("model", type=Path, help="the directory to be made, such as ../../models/smollm2-135m")
    return parser.parse_args()


def export(source: TextSource, target: Path) -> None:
    """Writes the model into `target`, which is there with an empty folder `onnx`."""
    write_text_files(source, target)
    full = target / "onnx/model.onnx"
    if is_llama_like(source.model):
        for name, products in _PRODUCTS.items():
            write_group_query(source.model, full.with_name(name), products)
            _say(full.with_name(name))
        return
    export_decoder(source.model, full)
    for name, scheme in _SCHEMES.items():
        file = full.with_name(name)
        quantized = quantize_graph(full, file, scheme)
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(quantized.counts.items()))
        _say(file, f", weights of {kinds}")
        for weight, numbers in quantized.left.items():
            print(f"  stays float: {weight}, {numbers} numbers", flush=True)
    tie_table(full)
    _say(full)


def _say(file: Path, what: str = "") -> None:
    size = sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))
    print(f"onnx/{file.name}: {size / 1e6:.1f} MB{what}", flush=True)


if __name__ == "__main__":
    main()
