"""The Python client of Darkroom, a self-hosted inference queue for images and texts."""

from .api_types import (
    AcceptedRequest,
    CanceledRequest,
    ImageInfo,
    ImageRequest,
    ImageView,
    Model,
    RequestSummary,
    RequestView,
    TextRequest,
    TextView,
)
from .async_client import AsyncDarkroom
from .calls import draw_idempotency_key
from .client import Darkroom
from .errors import DarkroomError
from .files import File
from .text_log import text_after
from .types import Image, ImageEvent, InputImage, RequestEvent, RequestStatus, TextChange, TextEvent

__all__ = [
    "AcceptedRequest",
    "AsyncDarkroom",
    "CanceledRequest",
    "Darkroom",
    "DarkroomError",
    "File",
    "Image",
    "ImageEvent",
    "ImageInfo",
    "ImageRequest",
    "ImageView",
    "InputImage",
    "Model",
    "RequestEvent",
    "RequestStatus",
    "RequestSummary",
    "RequestView",
    "TextChange",
    "TextEvent",
    "TextRequest",
    "TextView",
    "draw_idempotency_key",
    "text_after",
]
