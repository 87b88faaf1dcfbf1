"""Engines without steps: one call makes several outputs."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import Any, Sequence

from .engine import Engine, InvalidRequest, Report, Request


class Canceled(BaseException):
    """No request of the run is wanted any more. Let it end the run."""


@dataclass
class RunRequest(Request):
    """One output of a request, within a run."""

    canceled: bool = False
    """True once nobody waits for the output."""
    _run: "_Run | None" = field(default=None, repr=False)

    def report(self, step: int | None = None, preview: Any = None, text: str | None = None, tokens: int = 1) -> None:
        """
        Report progress, with the fields of Report. Raises Canceled if no request of the run is wanted any more.

        A run that lasts long must report now and then: an engine that is silent for too long is killed.
        """
        assert self._run is not None, "report() works only within run()"
        self._run.report(self, Report(step=step, preview=preview, text=text, tokens=tokens))


class RunEngine(Engine):
    """An engine without steps. The requests that wait when a run begins share it."""

    def run(self, requests: Sequence[RunRequest]) -> Sequence[Any]:
        """
        Make one output per request, in their order: what `Engine.finish` returns, or an exception for that request.

        Called in a thread of its own, one run at a time.
        """
        raise NotImplementedError

    def check(self, request: RunRequest) -> None:
        """Raise InvalidRequest if the request cannot be served. Called before the request waits for a run."""

    # The rows of such an engine are its requests.
    _current: "_Run | None" = None

    def create_row(self, request: Request) -> RunRequest:
        row = RunRequest(request.index, request.seed, request.input)
        self.check(row)
        return row

    def step(self, rows: Sequence[RunRequest]) -> Sequence[Report]:
        if self._current is None:
            self._current = _Run(self, list(rows))
        run = self._current
        # Rows of other shapes wait for the end of the run, as do those that came after its start.
        is_turn = any(row._run is run for row in rows)
        try:
            reports = run.advance() if is_turn else {}
        finally:
            if run.has_ended:
                self._current = None
        return [reports.get(id(row)) or Report() for row in rows]

    def finish(self, row: RunRequest) -> Any:
        assert row._run is not None
        return row._run.output_of(row)

    def release(self, row: RunRequest) -> None:
        row.canceled = True
        run = self._current
        if run is not None and run.is_unwanted:
            run.cancel()
            self._current = None


class _Run:
    """One call of `run`, in a thread. The thread advances only while the main thread waits for it."""

    def __init__(self, engine: RunEngine, requests: list[RunRequest]):
        self._engine = engine
        self._requests = requests
        for request in requests:
            request._run = self
        self._outputs: Sequence[Any] = []
        self._has_reported = False
        self._is_canceled = False
        # The thread puts a report, or None at its end.
        self._reports: queue.Queue[tuple[RunRequest, Report] | None] = queue.Queue()
        self._resumed = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.has_ended = False

    @property
    def is_unwanted(self) -> bool:
        return all(request.canceled for request in self._requests)

    def advance(self) -> dict[int, Report]:
        """Let the thread continue to its next report or its end, and return the reports by `id` of the request."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._call, daemon=True)
            self._thread.start()
        else:
            self._resumed.release()
        found = self._reports.get()
        if found is not None:
            return {id(found[0]): found[1]}
        self.has_ended = True
        return self._ends()

    def cancel(self) -> None:
        """Unwind the thread, and wait for its end: the next run must not overlap it."""
        self._is_canceled = True
        if self._thread is None:
            return
        self._resumed.release()
        while self._reports.get() is not None:
            self._resumed.release()

    def report(self, request: RunRequest, report: Report) -> None:
        if not self._is_canceled:
            self._has_reported = True
            self._reports.put((request, report))
            self._resumed.acquire()
        if self._is_canceled:
            raise Canceled

    def output_of(self, request: RunRequest) -> Any:
        return self._outputs[next(at for at, each in enumerate(self._requests) if each is request)]

    def _call(self) -> None:
        try:
            self._outputs = self._engine.run(self._requests)
            if len(self._outputs) != len(self._requests):
                raise ValueError(f"run returned {len(self._outputs)} outputs, expected {len(self._requests)}")
        except BaseException as error:
            self._error = error
        self._reports.put(None)

    def _ends(self) -> dict[int, Report]:
        error = self._error
        if error is not None:
            if not self._has_reported and not isinstance(error, InvalidRequest):
                # Rows that have changed nothing may be tried again, in smaller runs.
                for request in self._requests:
                    request._run = None
                raise error
            return {id(request): Report(error=_as_exception(error)) for request in self._requests}
        return {
            id(request): Report(error=output) if isinstance(output, Exception) else Report(done=True)
            for request, output in zip(self._requests, self._outputs)
        }


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else RuntimeError(f"run ended with {error!r}")
