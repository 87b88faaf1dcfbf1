"""python loras.py <model>: gives a model that is exported already the graphs with adapters; see README.md."""

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
    add_loras(model)


def add_loras(model: Path) -> None:
    """Writes a graph that takes adapters beside each of the model's denoiser.

    Raises:
        SystemExit: there is none, or one whose layers are not known.
    """
    graphs = [*model.glob("unet/*.onnx"), *model.glob("transformer/*.onnx")]
    graphs = sorted(graph for graph in graphs if not graph.name.endswith(".loras.onnx"))
    if not graphs:
        raise SystemExit(f"{model}: neither unet/ nor transformer/ has a graph")
    for graph in graphs:
        layers = write_loras_graph(graph)
        written = loras_file(graph)
        size = written.stat().st_size / 1e6
        print(f"{written.relative_to(model)}: {size:.1f} MB, adapters of {layers} layers", flush=True)


if __name__ == "__main__":
    main()
