"""Entry point of an engine's process. The worker runs this file with the Python of the setting PYTHON."""

import sys
from pathlib import Path

# Run as a file: the package is beside the worker, and need not be installed.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from darkroom_engine.server import serve  # noqa: E402

serve()
