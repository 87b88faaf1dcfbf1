"""python record.py: a tiny model in fp16 and INT8, and what it draws in fp32, for the tests of Darkroom's engine.

Written to tools/golden/vectors/export. The tokenizer is that of models/emoji-sd, which the tests put beside it.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import onnx

from export import export
from export_model.checkpoint import read_checkpoint
from tests.checkpoints import smallest

_HERE = Path(__file__).resolve().parent
_TARGET = _HERE.parent / "golden/vectors/export"
_SIZE = {"width": 32, "height": 32}
_REQUESTS = [
    {"prompt": "a red apple", "seed": 7, "numInferenceSteps": 8, "guidanceScale": 3, "scheduler": "ddim", **_SIZE},
    {"prompt": "a blue bird", "seed": 1, "numInferenceSteps": 6, "guidanceScale": 7.5, "scheduler": "euler", **_SIZE},
    {"prompt": "a cat", "seed": 2, "numInferenceSteps": 5, "guidanceScale": 1, "scheduler": "dpmpp_2m", **_SIZE},
]


def main() -> None:
    """Exports, draws, and shortens names, which are most of a tiny model's bytes."""
    shutil.rmtree(_TARGET, ignore_errors=True)
    model = _TARGET / "model"
    model.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        smallest().save_pretrained(scratch)
        export(read_checkpoint(Path(scratch)), model, None)
        requests = Path(scratch) / "requests.json"
        requests.write_text(json.dumps(_REQUESTS))
        command = ["node", _HERE / "record-images.mjs", model, requests]
        (_TARGET / "recorded.json").write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    shutil.rmtree(model / "tokenizer")
    for file in model.glob("*/*.onnx"):
        if file.name == "model.onnx":
            file.unlink()
        else:
            _shorten(file)


def _shorten(file: Path) -> None:
    model = onnx.load(file)
    graph = model.graph
    kept = {"": ""} | {value.name: value.name for value in [*graph.input, *graph.output]}
    for weight in graph.initializer:
        weight.name = kept.setdefault(weight.name, f"w{len(kept)}")
    for node in graph.node:
        node.name = ""
        for names in (node.input, node.output):
            names[:] = [kept.setdefault(name, f"v{len(kept)}") for name in names]
    del graph.value_info[:]
    onnx.checker.check_model(model)
    onnx.save(model, file)


if __name__ == "__main__":
    main()
