"""Serves an engine to the worker that started this process: docs/engine-protocol.md."""

from __future__ import annotations

import ast
import faulthandler
import importlib.util
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from .engine import Engine, InvalidRequest, Report, Request
from .frames import Channel, is_buffer

VERSION = 1
CHANNEL_DESCRIPTOR = 3
MAX_MESSAGE_LENGTH = 2000
MAX_STACK_LENGTH = 8000


class Unfit(Exception):
    """The module cannot be served. The cause, if any, is the module's own error."""


def serve() -> None:
    """Serve until the worker closes the channel or asks for the end."""
    channel = Channel(CHANNEL_DESCRIPTOR)
    # What the engine prints goes to the log, and it reads nothing.
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()
    # The worker decides when this process ends. A Ctrl-C reaches the whole group.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    try:
        _serve(channel)
    except (EOFError, ConnectionError, BrokenPipeError):
        pass
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads of the engine must not keep the process.
        os._exit(0)


def _serve(channel: Channel) -> None:
    start = channel.receive()
    try:
        if start["version"] != VERSION:
            raise Unfit(f"the worker speaks version {start['version']} of the protocol, expected {VERSION}")
        engine = load(start["module"], start["model"])
        ready = {"card": dict(engine.card), "slots": engine.slots, "methods": sorted(methods_of(engine))}
        channel.send({"type": "ready", "version": VERSION, **ready})
    except Exception as error:
        cause = error.__cause__ if isinstance(error, Unfit) else error
        message = str(error) if isinstance(error, Unfit) else "create_engine returned a card that cannot be sent"
        channel.send({"type": "unfit", "message": message, "thrown": "" if cause is None else _message(cause)})
        return
    Session(engine, channel).run()


def load(path: str, model: str) -> Engine:
    """Import the module and create its engine. Raises Unfit."""
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise Unfit("expected a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        missing = missing_packages(path) or [str(error.name)]
        raise Unfit(f"it needs packages that PYTHON ({sys.executable}) does not have: {', '.join(missing)}") from error
    except BaseException as error:
        raise Unfit("it could not be loaded") from error
    create = getattr(module, "create_engine", None)
    if not callable(create):
        raise Unfit("expected a module with a function create_engine(model)")
    try:
        engine = create(model)
    except ModuleNotFoundError as error:
        raise Unfit(f"it needs packages that PYTHON ({sys.executable}) does not have: {error.name}") from error
    except BaseException as error:
        raise Unfit("create_engine raised an error") from error
    if not isinstance(engine, Engine):
        raise Unfit(f"create_engine returned a {type(engine).__name__}, expected an Engine or a RunEngine")
    if not hasattr(engine, "card"):
        raise Unfit("the engine has no card")
    return engine


def missing_packages(path: str) -> list[str]:
    """Return the packages that the module imports at its top level and that are not installed."""
    names: dict[str, None] = {}
    for node in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name.split(".")[0] for alias in node.names))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names[node.module.split(".")[0]] = None
    return [name for name in names if name not in sys.modules and importlib.util.find_spec(name) is None]


def methods_of(engine: Engine) -> dict[str, Any]:
    """Return the methods of an engine that operators may call."""
    return {
        name: getattr(engine, name)
        for name in dir(type(engine))
        if getattr(getattr(type(engine), name), "__darkroom_rpc__", False)
    }


class Session:
    """The rows of an engine, and the calls of the worker, one after the other."""

    def __init__(self, engine: Engine, channel: Channel):
        self._engine = engine
        self._channel = channel
        self._rows: dict[int, tuple[Any, Request]] = {}
        self._methods = methods_of(engine)

    def run(self) -> None:
        while True:
            message = self._channel.receive()
            kind = message["type"]
            if kind == "release":
                self._release(message["row"])
                continue
            if kind == "close":
                self._engine.close()
                return
            try:
                value = getattr(self, f"_{kind}")(message)
                # Values that cannot be sent raise an error here.
                self._channel.send({"type": "reply", "call": message["call"], "value": value})
            except ConnectionError:
                raise
            except Exception as error:
                self._channel.send({"type": "error", "call": message["call"], **error_fields(error)})

    def _create(self, message: dict[str, Any]) -> dict[str, Any]:
        fields = {name: message[name] for name in ("index", "seed", "input")}
        checkpoint = message.get("checkpoint")
        is_resumed = checkpoint is not None
        try:
            row, request = self._make(Request(**fields, checkpoint=checkpoint))
        except Exception:
            if not is_resumed:
                raise
            # A checkpoint that does not fit: the row starts over.
            is_resumed = False
            row, request = self._make(Request(**fields))
        self._rows[message["row"]] = (row, request)
        return {"isResumed": is_resumed, "state": self._state(row, Report())}

    def _make(self, request: Request) -> tuple[Any, Request]:
        request = self._engine.before(request)
        return self._engine.create_row(request), request

    def _step(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        rows = [self._rows[each][0] for each in message["rows"]]
        reports = self._engine.step(rows)
        if len(reports) != len(rows):
            raise ValueError(f"step returned {len(reports)} reports, expected {len(rows)}, one for each row")
        return [self._report(row, report) for row, report in zip(rows, reports)]

    def _report(self, row: Any, report: Report) -> dict[str, Any]:
        if report.error is not None:
            return {"error": error_fields(report.error)}
        return {"values": list(self._values(report)), "state": self._state(row, report)}

    def _values(self, report: Report):  # type: ignore[no-untyped-def]
        if report.text is not None:
            yield {"text": report.text, "tokens": report.tokens}
        if report.step is not None:
            preview = report.preview
            if preview is not None and is_buffer(preview):
                height, width, _ = preview.shape
                preview = {"data": preview, "width": width, "height": height}
            yield {"step": report.step, **({} if preview is None else {"preview": preview})}

    def _state(self, row: Any, report: Report) -> dict[str, Any]:
        left = {} if report.steps_left is None else {"stepsLeft": report.steps_left}
        return {"isDone": report.done, "shape": self._engine.shape(row), **left}

    def _finish(self, message: dict[str, Any]) -> Any:
        row, request = self._rows[message["row"]]
        output = self._engine.after(request, self._engine.finish(row))
        return {"data": output} if is_buffer(output) else output

    def _checkpoint(self, message: dict[str, Any]) -> Any:
        return self._engine.checkpoint(self._rows[message["row"]][0])

    def _health(self, _message: dict[str, Any]) -> None:
        self._engine.health()

    def _rpc(self, message: dict[str, Any]) -> Any:
        method = self._methods.get(message["method"])
        if method is None:
            names = ", ".join(sorted(self._methods)) or "none"
            raise InvalidRequest(f"method is {message['method']!r}, expected one of the engine's: {names}")
        return method(**message["parameters"])

    def _release(self, number: int) -> None:
        entry = self._rows.pop(number, None)
        if entry is None:
            return
        try:
            self._engine.release(entry[0])
        except Exception:
            traceback.print_exc()


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the fields of an error message. GPU libraries name their error OutOfMemoryError, too."""
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    code = "invalid_request" if isinstance(error, InvalidRequest) else "out_of_memory" if is_memory else "error"
    message = str(error) if code == "invalid_request" else _message(error)
    stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"code": code, "message": message[:MAX_MESSAGE_LENGTH], "stack": stack[-MAX_STACK_LENGTH:]}


def _message(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
