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
    """Writes a graph that takes adapters beside each of the model's denoiser and CLIP text encoders.

    Raises:
        SystemExit: there is no denoiser, or one whose layers are not known.
    """
    denoisers = _list_graphs(model, "unet", "transformer")
    if not denoisers:
        raise SystemExit(f"{model}: neither unet/ nor transformer/ has a graph")
    for graph in [*denoisers, *_list_graphs(model, "text_encoder", "text_encoder_2", "text_encoder_3")]:
        try:
            layers = write_loras_graph(graph)
        except LookupError as error:
            if graph in denoisers:
                raise SystemExit(str(error)) from error
            print(f"{graph.relative_to(model)}: takes no adapters, its layers are not those of CLIP", flush=True)
            continue
        written = loras_file(graph)
        size = written.stat().st_size / 1e6
        print(f"{written.relative_to(model)}: {size:.1f} MB, adapters of {layers} layers", flush=True)


def _list_graphs(model: Path, *folders: str) -> list[Path]:
    graphs = [graph for folder in folders for graph in sorted((model / folder).glob("*.onnx"))]
    return [graph for graph in graphs if not graph.name.endswith(".loras.onnx")]


if __name__ == "__main__":
    main()
