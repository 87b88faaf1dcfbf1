"""Write an inference engine for Darkroom in Python: docs/python-engines.md."""

from .engine import Engine, InvalidRequest, Report, Request, rpc
from .runs import Canceled, RunEngine, RunRequest

__all__ = ["Canceled", "Engine", "InvalidRequest", "Report", "Request", "RunEngine", "RunRequest", "rpc"]
