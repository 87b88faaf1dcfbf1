"""Types that the client makes of the API's: complete images and texts instead of their chunks."""

from __future__ import annotations

from typing import Literal, TypedDict, final

from .api_types import (
    CanceledEvent,
    DeltaEvent,
    ExpiredEvent,
    FailedEvent,
    ImageInfo,
    ImageProgressEvent,
    ImagesSucceededEvent,
    LoadingEvent,
    QueuedEvent,
    ResetEvent,
    SnapshotEvent,
    StartedEvent,
    TextEndEvent,
    TextProgressEvent,
    TextsSucceededEvent,
)

RequestStatus = Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]
"""The state of a request."""


class Image(ImageInfo):
    """A finished image."""

    data: bytes
    """The encoded image: `bytes` bytes of the type `content_type`."""


@final
class ImageEvent(Image):
    """An image is done. Its chunks were received completely, or it was fetched.

    It may be sent again by a worker that takes over after a `queued` event with a higher `attempt`; the later one is
    valid.
    """

    type: Literal["image"]
    id: str
    request_id: str
    timestamp: str


@final
class TextEvent(TextEndEvent):
    """A text is done. Its chunks were received completely, or it was fetched."""

    text: str
    """The complete text."""


@final
class InputImage(TypedDict):
    """An input image of a request."""

    data: bytes
    content_type: str


TextChange = DeltaEvent | SnapshotEvent | ResetEvent
"""An event that changes a text."""

RequestEvent = (
    QueuedEvent
    | StartedEvent
    | LoadingEvent
    | ImageProgressEvent
    | ImageEvent
    | ImagesSucceededEvent
    | TextProgressEvent
    | TextChange
    | TextEvent
    | TextsSucceededEvent
    | FailedEvent
    | CanceledEvent
    | ExpiredEvent
)
"""An event of `stream`. Narrow it by its `type`, and `progress` and `succeeded` also by a field: `"step" in event`."""
