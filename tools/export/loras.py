"""python loras.py <model>: gives a model that is exported already the graphs with adapters; see README.md."""

import json
import sys
from pathlib import Path

from export_model.loras import loras_file, write_loras_graph


def main() -> None:
    """Writes one beside each graph of the model's denoiser."""
    if len(sys.argv) != 2:
        raise SystemExit("python loras.py <model>")
    model = Path(sys.argv[1])
    if not (model / "model_index.json").exists():
        raise SystemExit(f"{model}/model_index.json is missing: this is no model's directory")
    index = json.loads((model / "model_index.json").read_text())
    part = "unet" if "unet" in index else "transformer"
    graphs = [graph for graph in sorted((model / part).glob("*.onnx")) if not graph.name.endswith(".loras.onnx")]
    if not graphs:
        raise SystemExit(f"{model / part} has no graph")
    for graph in graphs:
        layers = write_loras_graph(graph)
        written = loras_file(graph)
        size = written.stat().st_size / 1e6
        print(f"{part}/{written.name}: {size:.1f} MB, adapters of {layers} layers", flush=True)


if __name__ == "__main__":
    main()
