"""Serves an engine to the worker that started this process: docs/engine-protocol.md."""

from __future__ import annotations

import ast
import faulthandler
import functools
import importlib.util
import os
import select
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .engine import Engine, InvalidRequest, Report, Request
from .frames import Channel, as_bytes, encode, is_buffer

VERSION = 1
CHANNEL_DESCRIPTOR = 3
MAX_MESSAGE_LENGTH = 2000
MAX_STACK_LENGTH = 8000
MAX_SHAPE_LENGTH = 200


class Unfit(Exception):
    """The module cannot be served. The cause, if any, is the module's own error."""


def serve() -> None:
    """Serve until the worker closes the channel or asks for the end."""
    end_group_with_worker(CHANNEL_DESCRIPTOR)
    channel = Channel(CHANNEL_DESCRIPTOR)
    # What the engine prints goes to the log, and it reads nothing.
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()
    outlive_signals()
    code = 0
    try:
        _serve(channel)
    except (EOFError, ConnectionError):
        # The worker has gone.
        pass
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads of the engine must not keep the process.
        os._exit(code)


def end_group_with_worker(descriptor: int) -> None:
    """
    Start a process that kills this process group once the worker has gone: a killed worker ends no processes that the
    engine has started, and an engine that hangs notices nothing.
    """
    if os.getpgrp() != os.getpid():
        return
    child = os.fork()
    if child > 0:
        os.waitpid(child, 0)
        return
    # Not a child of the engine, which may wait for its own.
    if os.fork() > 0:
        os._exit(0)
    hang_up = select.poll()
    hang_up.register(descriptor, 0)
    hang_up.poll()
    os.killpg(0, signal.SIGKILL)


def outlive_signals() -> None:
    """Ignore SIGINT and SIGTERM in this process: the worker decides when it ends. Its children do not ignore them."""
    for each in (signal.SIGINT, signal.SIGTERM):
        # SIG_IGN would outlast the exec of a child; a handler does not.
        signal.signal(each, lambda _signal, _frame: None)
        # System calls of libraries restart, as with SIG_IGN.
        signal.siginterrupt(each, False)
        os.register_at_fork(after_in_child=functools.partial(signal.signal, each, signal.SIG_DFL))


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
                frame = encode({"type": "reply", "call": message["call"], "value": value})
            except Exception as error:
                frame = encode({"type": "error", "call": message["call"], **error_fields(error)})
            self._channel.send_frame(frame)

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
        try:
            return {"isResumed": is_resumed, "state": self._state(row, Report())}
        except Exception:
            # The worker does not release a row that was not created.
            self._release(message["row"])
            raise

    def _make(self, request: Request) -> tuple[Any, Request]:
        request = self._engine.before(request)
        return self._engine.create_row(request), request

    def _step(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        rows = [self._rows[each][0] for each in message["rows"]]
        reports = self._engine.step(rows)
        # The rows have changed, and the worker repeats a call that fails: report errors row by row from here.
        if not isinstance(reports, Sequence) or len(reports) != len(rows):
            found = f"{len(reports)} reports" if isinstance(reports, Sequence) else f"a {type(reports).__name__}"
            error = ValueError(f"step returned {found}, expected a list of {len(rows)} reports, one for each row")
            return [{"error": error_fields(error)} for _ in rows]
        return [self._report(row, report) for row, report in zip(rows, reports)]

    def _report(self, row: Any, report: Any) -> dict[str, Any]:
        try:
            if not isinstance(report, Report):
                raise TypeError(f"step returned a {type(report).__name__} for a row, expected a Report")
            if report.error is None:
                found = {"values": list(self._values(report)), "state": self._state(row, report)}
                encode(found)
                return found
            if not isinstance(report.error, BaseException):
                raise TypeError(f"Report.error is {report.error!r}, expected an exception")
            return {"error": error_fields(report.error)}
        except Exception as error:
            return {"error": error_fields(error)}

    def _values(self, report: Report):  # type: ignore[no-untyped-def]
        if report.text is not None:
            yield {"text": report.text, "tokens": report.tokens}
        if report.step is not None:
            preview = report.preview
            if preview is not None and is_buffer(preview):
                shape = getattr(preview, "shape", ())
                if len(shape) != 3:
                    raise TypeError(f"Report.preview has shape {tuple(shape)}, expected (height, width, 3)")
                preview = {"data": as_bytes(preview), "width": shape[1], "height": shape[0]}
            yield {"step": report.step, **({} if preview is None else {"preview": preview})}

    def _state(self, row: Any, report: Report) -> dict[str, Any]:
        left, shape = report.steps_left, self._engine.shape(row)
        if not isinstance(report.done, bool):
            raise TypeError(f"Report.done is {report.done!r}, expected True or False")
        if left is not None and not (type(left) is int and 0 <= left < 2**53):
            raise TypeError(f"Report.steps_left is {left!r}, expected a whole number from 0, or None")
        if not isinstance(shape, str) or len(shape) > MAX_SHAPE_LENGTH:
            raise TypeError(f"shape returned {shape!r}, expected a str of up to {MAX_SHAPE_LENGTH} characters")
        return {"isDone": report.done, "shape": shape, **({} if left is None else {"stepsLeft": left})}

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
