"""Public interface of an engine that steps rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence


class InvalidRequest(Exception):
    """The request cannot be served. The client gets the message; any other error requeues the request."""


@dataclass
class Request:
    """One output of a request."""

    index: int
    """Index of the output within the request, from 0."""
    seed: int
    """Seed of this output, 0 to 2**32 - 1."""
    input: dict[str, Any]
    """The validated input: docs/executors.md#arguments-of-run."""
    checkpoint: bytes | None = None
    """State of an earlier run, as `Engine.checkpoint` returned it. Raise any error if it does not fit."""

    def wants_preview(self, step: int) -> bool:
        """Return whether the client gets a preview after this step, counted from 1."""
        every = self.input.get("previewEvery", 0)
        return every > 0 and step % every == 0 and step < self.input["numInferenceSteps"]


@dataclass
class Report:
    """Result of one step of one row."""

    step: int | None = None
    """Images: completed steps of the row. None if this call completed none."""
    preview: Any = None
    """Images: RGB bytes of shape (height, width, 3), or `{"data": ..., "contentType": ...}` with a file."""
    text: str | None = None
    """Texts: appended text, which does not end within a character."""
    tokens: int = 1
    """Texts: number of tokens of `text`."""
    done: bool = False
    """True after the last step of the row: `finish` follows."""
    steps_left: int | None = None
    """Number of steps that follow, if it is known: the next request then joins without an idle step."""
    error: Exception | None = None
    """The row cannot continue. Other rows are not affected."""


class Engine:
    """
    An engine that steps many rows at once. A row is any object that `create_row` returns; it makes one output.

    All methods are called from one thread, one at a time.
    """

    card: Mapping[str, Any]
    """Fields of docs/executors.md#the-card, such as `{"kind": "image"}`."""
    slots: int = 1
    """Max. rows at once, 1 to 4096."""

    def create_row(self, request: Request) -> Any:
        """Create a row. Other rows wait meanwhile. Raise InvalidRequest if the request cannot be served."""
        raise NotImplementedError

    def step(self, rows: Sequence[Any]) -> Sequence[Report]:
        """
        Take one step of the rows, with as few model calls as possible, and return one report per row, in their order.

        If it raises, no row may have changed: it is then called with each half of the rows.
        """
        raise NotImplementedError

    def finish(self, row: Any) -> Any:
        """
        Return the output of a row that is done.

        Images: RGB bytes of shape (height, width, 3), or `{"data": ..., "contentType": ...}` with a file. Texts: None,
        or a dict with `finishReason`, `stop`, `promptTokens` and `completionTokens`, each optional.
        """
        raise NotImplementedError

    def checkpoint(self, row: Any) -> bytes | None:
        """Return the state of a row, from which `create_row` continues to the same output; None if it has none."""
        return None

    def release(self, row: Any) -> None:
        """Free what a row holds. Called once for each row, however it ends."""

    def shape(self, row: Any) -> str:
        """Return the shape of a row: rows of equal shapes share steps. Default: one shape for all."""
        return ""

    def before(self, request: Request) -> Request:
        """Hook before `create_row`: return the request, or another one. It is a part of what determines the output."""
        return request

    def after(self, request: Request, output: Any) -> Any:
        """Hook after `finish`: return the output, or another one. It is a part of what determines the output."""
        return output

    def health(self) -> None:
        """Raise an error if the engine must be restarted. Called every few seconds, between steps."""

    def close(self) -> None:
        """Called before the process ends in order."""


def rpc(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let operators call a method of an engine: `POST /admin/workers/<id>/rpc`. It gets the parameters by name."""
    method.__darkroom_rpc__ = True  # type: ignore[attr-defined]
    return method
