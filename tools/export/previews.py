"""python previews.py <model>: gives a model that is exported already the numbers of its previews; see README.md."""

import sys
from pathlib import Path

from export_model.previews import add_preview


def main() -> None:
    """Fits them to the model's decoder, unless its darkroom.json has some."""
    if len(sys.argv) != 2:
        raise SystemExit("python previews.py <model>")
    say_preview(Path(sys.argv[1]))


def say_preview(model: Path) -> None:
    """Adds `preview` to the model's darkroom.json, and says what came of it."""
    explained = add_preview(model)
    words = "has a preview already" if explained is None else f"preview, R² {explained:.2f}"
    print(f"darkroom.json: {words}", flush=True)


if __name__ == "__main__":
    main()
