"""Errors of the client, and which of them are worth another try."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

import httpx


class DarkroomError(Exception):
    """Any error of a call.

    | `status` | `code` | |
    | --- | --- | --- |
    | 400 | `invalid_value`, `missing_field`, … | a field is invalid: `param` |
    | 404 | `request_not_found`, `model_not_found`, `image_not_found` | never existed |
    | 409 | `request_ended`, `image_not_ready` | too late to cancel, too early to fetch |
    | 410 | `request_gone` | expired |
    | 503 | `overloaded`, `unavailable`, … | retry after `retry_after_s` |
    | other | the API's, or `http_<status>` if the response is not from the API | |
    | None | `connection_failed` | no response, or an incomplete one |
    | None | `timeout` | no response within `timeout_s` |
    | 200 | `invalid_answer` | not from the API: usually a proxy's page |

    Example:
        try:
            client.submit(prompt="a red apple", n=1000)
        except DarkroomError as error:
            print(error.status, error.code, error.param)  # 400 invalid_value n

    """

    def __init__(
        self,
        message: str,
        code: str,
        status: int | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, code, status, param, retry_after_s)
        self.message = message
        self.code = code
        """Stable for programs, one per reason."""
        self.status = status
        """The HTTP status; None if no complete response arrived."""
        self.param = param
        """The invalid field."""
        self.retry_after_s = retry_after_s
        """Seconds to wait before the next try."""

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


def connection_error(what: str) -> DarkroomError:
    """Create the error for a missing or incomplete response; `what` describes the request."""
    return DarkroomError(f"the connection failed: {what}", "connection_failed")


def is_response_lost(error: DarkroomError) -> bool:
    """Return True if the API may have received the request: there was no response, or a proxy lost it."""
    return error.status in (None, 502, 504)


def is_temporary(error: DarkroomError) -> bool:
    """Return True if a GET may succeed when retried. Proxies return 502 and 504 while the API restarts."""
    return error.status in (None, 429, 502, 503, 504)


def error_of_response(response: httpx.Response, body: bytes, what: str) -> DarkroomError:
    """Read the error from a response that is not 2xx. `what` describes the request, such as `GET /v1/predict/x`."""
    status = response.status_code
    detail = _detail_of(body)
    return DarkroomError(
        _text_of(detail.get("message")) or f"{what} returned status {status}",
        _text_of(detail.get("code")) or f"http_{status}",
        status,
        _text_of(detail.get("param")),
        retry_after_of(response),
    )


def _detail_of(body: bytes) -> dict[str, Any]:
    """Return `error` of the API's error body; empty for any other body."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, TypeError, KeyError):
        return {}
    return error if isinstance(error, dict) else {}


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value != "" else None


def retry_after_of(response: httpx.Response) -> float | None:
    """Return the seconds of `Retry-After`, a number or a date; None if it is absent or invalid."""
    text = response.headers.get("retry-after", "")
    try:
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date without a time zone is in UTC.
    zoned = until if until.tzinfo is not None else until.replace(tzinfo=timezone.utc)
    return max(0.0, (zoned - datetime.now(timezone.utc)).total_seconds())
