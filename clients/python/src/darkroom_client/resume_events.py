"""The events of a request over as many connections as necessary."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast, get_args, get_type_hints

from .api_types import SentEvent
from .errors import DarkroomError, connection_error, is_temporary
from .http import Connection, back_off, read_parts, request_path, send
from .sse import EventParser, Message

END_TYPES = frozenset({"succeeded", "failed", "canceled", "expired"})
TYPES = frozenset(get_args(get_type_hints(event)["type"])[0] for event in get_args(SentEvent))


async def resume_events(connection: Connection, request_id: str, after: str | None) -> AsyncGenerator[SentEvent, None]:
    """Yield the events of a request in order, after the event `after` or all, each once. End after `[DONE]`.

    Raise `DarkroomError` for a permanent error, or when `max_retries` connections in a row bring nothing.
    """
    last = after
    has_ended = False
    retry_s: float | None = None
    # Connections in a row that brought nothing.
    failures = 0
    while True:
        parser = EventParser()
        error = connection_error(f"the events of {request_id} were cut")
        try:
            async with aclosing(_read_messages(connection, request_id, last, parser)) as messages:
                async for message in messages:
                    if message.data == "[DONE]":
                        return
                    if message.is_comment:
                        # Heartbeats come every 15 s: a silent connection has lost its other end.
                        failures = 0
                    # A server or proxy that ignores `Last-Event-ID` starts again from the first event.
                    if message.id is None or (last is not None and not _is_after(message.id, last)):
                        continue
                    event = _event_of(message)
                    last = message.id
                    failures = 0
                    if event is not None:
                        has_ended = event["type"] in END_TYPES
                        yield event
        except DarkroomError as caught:
            if not is_temporary(caught):
                raise
            error = caught
        # No event follows a final one, so losing the rest of the connection does not matter.
        if has_ended:
            return
        if failures >= connection.max_retries:
            raise error
        retry_s = retry_s if parser.retry_s is None else parser.retry_s
        await back_off(connection, failures, retry_s=retry_s, retry_after_s=error.retry_after_s)
        failures += 1


async def _read_messages(
    connection: Connection, request_id: str, last: str | None, parser: EventParser
) -> AsyncGenerator[Message, None]:
    """Yield the messages of one connection until it ends or breaks."""
    path = f"{request_path(request_id)}/events"
    resume = {} if last is None else {"last-event-id": last}
    headers = {"accept": "text/event-stream", **resume}
    response = await send(connection, path, headers=headers, read_timeout_s=connection.silence_s)
    content_type = response.headers.get("content-type", "nothing")
    if not content_type.startswith("text/event-stream"):
        await connection.transport.close(response)
        problem = f"GET {path} returned content type {content_type}, expected text/event-stream"
        raise DarkroomError(problem, "invalid_answer", response.status_code)
    async with aclosing(read_parts(connection, response)) as parts:
        async for part in parts:
            for message in parser.feed(part):
                yield message


def _is_after(event_id: str, last: str) -> bool:
    """Return True if an event is later. Ids are those of Redis streams, `<sequence>-<number>` or `<sequence>`."""
    numbers = [re.fullmatch(r"([0-9]{1,20})(?:-([0-9]{1,20}))?", each) for each in (event_id, last)]
    parts = [(int(found[1]), int(found[2] or 0)) for found in numbers if found is not None]
    return len(parts) == len(numbers) and parts[0] > parts[1]


def _event_of(message: Message) -> SentEvent | None:
    """Parse an event. Return None for types that this version does not know: newer servers may send others."""
    if message.event not in TYPES:
        return None
    try:
        fields = {**json.loads(message.data), "type": message.event, "id": message.id}
    except (ValueError, TypeError) as error:
        raise connection_error(f"event {message.id} is not a JSON object") from error
    return cast("SentEvent", fields)
