# Generated from /openapi.json by `npm run generate`. Do not edit.
"""Types of the API: requests, responses and events. Times are ISO 8601."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, final

from .files import File

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired


@final
class ImageRequestPreview(TypedDict):
    every: int


@final
class ImageRequestLoras(TypedDict):
    id: str
    scale: NotRequired[float | None]


@final
class ImageRequest(TypedDict):
    model: NotRequired[str | None]
    """The id of a model in /v1/models. Default: the server’s configured model, or its first."""
    prompt: str
    """Description of the image."""
    negative_prompt: NotRequired[str | None]
    """Description of what to avoid; no effect at guidance 1. Default: none."""
    prompt_syntax: NotRequired[Literal["plain", "webui"] | None]
    """How both prompts are read. "plain": brackets are text. "webui", for models whose `prompt_syntaxes` has it: as
    by Stable Diffusion web UI, with weights (`(red:1.2)`, `(red)`, `[red]`), adapters (`<lora:pixels:0.8>`), and
    up to 300 tokens. Default: "plain"."""
    size: NotRequired[str | None]
    """Pixels, within the limits of the model. Default: "auto", the model’s default size."""
    n: NotRequired[int | None]
    """Number of images; image i has the seed `seed + i`. Default: 1."""
    num_inference_steps: NotRequired[int | None]
    """Number of denoising steps, within the limits of the model. Default: the model’s."""
    guidance_scale: NotRequired[float | None]
    """How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the model’s."""
    guidance_rescale: NotRequired[float | None]
    """Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency models. Default: 0
    (off)."""
    seed: NotRequired[int | None]
    """The same seed and parameters give the same bytes. Default: random; the result contains it."""
    scheduler: NotRequired[str | None]
    """One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI (`Euler a`).
    Default: the model’s."""
    output_format: NotRequired[Literal["png", "jpeg", "webp"] | None]
    """Default: png."""
    output_compression: NotRequired[int | None]
    """Quality of jpeg and webp; png ignores it. Default: 100."""
    output: NotRequired[Literal["url", "inline"] | None]
    """"inline" returns the images in base64 if the request waits for its result (`Prefer: wait`). Default: "url"."""
    preview: NotRequired[Literal["off"] | ImageRequestPreview | None]
    """Number of steps between previews of the unfinished image, or "off". Default: {"every": 5}."""
    image: NotRequired[File | str | None]
    """The input image, for models whose `takes` has it: PNG, JPEG or WebP, as a data URL, an https URL that the
    server fetches, the `url` of an image from an earlier request of yours, or a file of a `multipart/form-data`
    body. The server rotates it by its EXIF orientation, scales it to fill `size` and crops it at the center. With
    `size: "auto"`, the size is that of the image, within the limits of the model."""
    mask: NotRequired[File | str | None]
    """The area to repaint, for models whose `takes` has it: an image of the size of `image`, white where to repaint
    and black where `image` stays."""
    strength: NotRequired[float | None]
    """How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a mask."""
    metadata: NotRequired[bool | None]
    """Whether to embed the generation parameters in the file (prompts, seed, steps and so on), readable by common
    tools. Anyone with the file can then read the prompt. An object, as OpenAI’s clients send it, is ignored.
    Default: false."""
    upscale: NotRequired[Literal[2, 4] | None]
    """Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling."""
    loras: NotRequired[Sequence[ImageRequestLoras] | None]
    """LoRA adapters of the model with their scales. Default: none; the default scale is 1."""
    priority: NotRequired[int | None]
    """1 is served first, 10 last. Default: 5."""
    timeout_s: NotRequired[float | None]
    """The request is `expired` if it has not ended within this time. Default: set by the server; at most one day."""
    start_timeout_s: NotRequired[float | None]
    """The request is `expired` if no worker has started it within this time. Default: timeout_s."""
    webhook_url: NotRequired[str | None]
    """URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are rejected unless the
    server allows them."""
    webhook_events: NotRequired[Sequence[Literal["started", "progress", "completed"]] | None]
    """Events to send; `completed` is any end. Default: ["completed"]."""


@final
class TextRequest(TypedDict):
    model: NotRequired[str | None]
    """The id of a model in /v1/models. Default: the server’s configured model, or its first."""
    prompt: NotRequired[str | Sequence[int] | None]
    """Text to continue, as a string or as token ids. Instead of `messages`."""
    messages: NotRequired[Sequence[Mapping[str, Any]] | None]
    """Conversation to answer, rendered with the chat template of the model. Instead of `prompt`. Parts of the type
    `image_url` are for models whose `takes` has `image`."""
    image: NotRequired[File | str | None]
    """An image to ask about, for models whose `takes` has it: the request is then one message with this image and
    `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body."""
    max_tokens: NotRequired[int | None]
    """Maximum number of tokens to generate. Default: the model’s."""
    temperature: NotRequired[float | None]
    """0 always takes the most probable token. Default: the model’s."""
    top_p: NotRequired[float | None]
    """Samples from the most probable tokens whose probabilities add up to this. Default: the model’s."""
    top_k: NotRequired[int | None]
    """Samples from this many most probable tokens; 0 is all. Default: the model’s."""
    min_p: NotRequired[float | None]
    """Minimum probability of a token, relative to the most probable one. Default: 0."""
    presence_penalty: NotRequired[float | None]
    """Penalty for tokens that were generated before. Default: 0."""
    frequency_penalty: NotRequired[float | None]
    """Penalty for tokens that were generated before, once per occurrence. Default: 0."""
    logit_bias: NotRequired[Mapping[str, float] | None]
    """Values to add to the logits of tokens, by token id. Default: none."""
    logprobs: NotRequired[bool | None]
    """Whether to return the log probability of each token. Default: false."""
    top_logprobs: NotRequired[int | None]
    """Number of most probable alternatives to return for each token. Default: 0."""
    n: NotRequired[int | None]
    """Number of texts; text i has the seed `seed + i`. Default: 1."""
    seed: NotRequired[float | None]
    """The same seed and parameters give the same text. A seed of more than 32 bits is folded to 32; the result has
    the folded one. Default, and -1: random."""
    stop: NotRequired[str | Sequence[str] | None]
    """Strings at which generation ends; they are not part of the text. Default: none."""
    ignore_eos: NotRequired[bool | None]
    """Ignore the end token and generate max_tokens. Default: false."""
    response_format: NotRequired[Mapping[str, Any] | None]
    """Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema. Default: text."""
    grammar: NotRequired[str | None]
    """Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none."""
    regex: NotRequired[str | None]
    """Regular expression that the full text of every answer matches. Default: none."""
    tools: NotRequired[Sequence[Mapping[str, Any]] | None]
    """Tools that the model may call, with arguments that match `parameters`; an empty list is none. For models with
    `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either calls or text of that form."""
    tool_choice: NotRequired[Literal["auto", "none", "required"] | Mapping[str, Any] | None]
    """`auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it must call this one.
    Default: auto."""
    parallel_tool_calls: NotRequired[bool | None]
    """Whether one answer may have several tool calls. Default: true."""
    max_nfe: NotRequired[int | None]
    """Block diffusion only: maximum number of model calls. Default: no limit."""
    confidence_threshold: NotRequired[float | None]
    """Block diffusion only: probability from which a token is kept. Default: the model’s."""
    tokens_per_step: NotRequired[int | None]
    """Block diffusion only: number of tokens kept in each call, instead of those above the threshold."""
    priority: NotRequired[int | None]
    """1 is served first, 10 last. Default: 5."""
    timeout_s: NotRequired[float | None]
    """The request is `expired` if it has not ended within this time. Default: set by the server; at most one day."""
    start_timeout_s: NotRequired[float | None]
    """The request is `expired` if no worker has started it within this time. Default: timeout_s."""
    webhook_url: NotRequired[str | None]
    """URL to POST events to, signed by the Standard Webhooks scheme. Private addresses are rejected unless the
    server allows them."""
    webhook_events: NotRequired[Sequence[Literal["started", "progress", "completed"]] | None]
    """Events to send; `completed` is any end. Default: ["completed"]."""


@final
class AcceptedRequestEtaSeconds(TypedDict):
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    min: float
    max: float


@final
class AcceptedRequestUrls(TypedDict):
    self: str
    events: str
    cancel: str


@final
class AcceptedRequest(TypedDict):
    request_id: str
    status: Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]
    """`queued`, unless an Idempotency-Key found an earlier one."""
    queue_position: int | None
    """Requests that will be dispatched before this one; null once it runs."""
    eta_seconds: NotRequired[AcceptedRequestEtaSeconds]
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    is_possible: bool
    """True if a live worker serves the model right now."""
    urls: AcceptedRequestUrls


@final
class CanceledRequest(TypedDict):
    request_id: str
    status: Literal["canceled", "canceling"]


@final
class ImageViewEtaSeconds(TypedDict):
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    min: float
    max: float


@final
class Failure(TypedDict):
    code: str
    message: str


@final
class ImageViewUrls(TypedDict):
    self: str
    events: str
    cancel: str


@final
class ImageViewParametersPreview(TypedDict):
    every: int


@final
class ImageViewParametersLoras(TypedDict):
    id: str
    scale: NotRequired[float]


@final
class ImageViewParameters(TypedDict):
    """A body that reproduces the same images."""
    model: str
    """The id of a model in /v1/models. Default: the server’s configured model, or its first."""
    prompt: str | None
    """Null once the request has ended, if the server does not retain prompts."""
    negative_prompt: str | None
    """Null once the request has ended, if the server does not retain prompts."""
    prompt_syntax: NotRequired[Literal["plain", "webui"]]
    """How both prompts are read. "plain": brackets are text. "webui", for models whose `prompt_syntaxes` has it: as
    by Stable Diffusion web UI, with weights (`(red:1.2)`, `(red)`, `[red]`), adapters (`<lora:pixels:0.8>`), and
    up to 300 tokens. Default: "plain"."""
    size: str
    """Pixels, within the limits of the model. Default: "auto", the model’s default size."""
    n: int
    """Number of images; image i has the seed `seed + i`. Default: 1."""
    num_inference_steps: int
    """Number of denoising steps, within the limits of the model. Default: the model’s."""
    guidance_scale: float
    """How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the model’s."""
    guidance_rescale: float
    """Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency models. Default: 0
    (off)."""
    seed: int
    """The same seed and parameters give the same bytes. Default: random; the result contains it."""
    scheduler: str
    """One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI (`Euler a`).
    Default: the model’s."""
    output_format: Literal["png", "jpeg", "webp"]
    """Default: png."""
    output_compression: int
    """Quality of jpeg and webp; png ignores it. Default: 100."""
    preview: Literal["off"] | ImageViewParametersPreview
    """Number of steps between previews of the unfinished image, or "off". Default: {"every": 5}."""
    image: NotRequired[str | None]
    """URL of the input image, scaled and cropped; absent without one, null if it is no longer stored."""
    mask: NotRequired[str | None]
    """URL of the mask, likewise: white where the image was repainted."""
    strength: NotRequired[float]
    """How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a mask."""
    metadata: NotRequired[bool]
    upscale: NotRequired[Literal[2, 4]]
    """Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling."""
    loras: NotRequired[list[ImageViewParametersLoras]]
    """LoRA adapters of the model with their scales. Default: none; the default scale is 1."""


class ImageInfo(TypedDict):
    index: int
    url: str
    seed: int
    width: int
    height: int
    content_type: str
    bytes: int
    nsfw_content_detected: NotRequired[bool]
    """Result of the model’s safety checker; a flagged image is black. Absent if the model has no checker."""
    b64_json: NotRequired[str]
    """The image in base64, with `?images=inline`."""


@final
class ImageView(TypedDict):
    kind: Literal["image"]
    request_id: str
    status: Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]
    is_canceling: bool
    """Running, and will be canceled at its next step."""
    model: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    """Time until which the results can be fetched; null while open."""
    is_pinned: bool
    """True if it is retained for longer than other requests."""
    queue_position: int | None
    """Requests ahead of this one; null once it runs."""
    eta_seconds: NotRequired[ImageViewEtaSeconds]
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    is_possible: bool
    attempts: int
    """Deliveries to a worker so far."""
    error: NotRequired[Failure]
    retry_of: NotRequired[str]
    """The failed request of which an operator made this retry."""
    retried_as: NotRequired[str]
    """The retry that an operator made of this failed request."""
    urls: ImageViewUrls
    step: int
    """Steps done, over all images of the request."""
    total_steps: int
    progress: float
    seed: int
    seeds: list[int]
    """One per image."""
    parameters: ImageViewParameters
    """A body that reproduces the same images."""
    prompt_tokens_cut: int | None
    """Number of tokens cut from the prompt's end because they exceed the model's limit; with several text encoders,
    the smallest number counts. null before the first image is done."""
    negative_prompt_tokens_cut: int | None
    """The same for the negative prompt; 0 if guidance does not use it."""
    images: list[ImageInfo]


@final
class TextViewEtaSeconds(TypedDict):
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    min: float
    max: float


@final
class TextViewUrls(TypedDict):
    self: str
    events: str
    cancel: str


@final
class TextViewTextsToolCallsFunction(TypedDict):
    name: str
    arguments: str
    """JSON; incomplete if the text was cut."""


@final
class TextViewTextsToolCalls(TypedDict):
    id: str
    type: Literal["function"]
    function: TextViewTextsToolCallsFunction


@final
class TextViewTexts(TypedDict):
    index: int
    text: str
    tool_calls: NotRequired[list[TextViewTextsToolCalls]]
    """Tool calls in the text, if there are any."""


@final
class TextViewParameters(TypedDict):
    """A body that reproduces the same texts. For a model that another server runs, only the fields that were sent."""
    model: str
    """The id of a model in /v1/models. Default: the server’s configured model, or its first."""
    prompt: list[int] | str | None
    """Token ids; for a model that another server runs, the prompt as sent. Null with `messages`, and once the
    request has ended if the server does not retain prompts."""
    messages: NotRequired[list[Mapping[str, Any]]]
    """Conversation to answer, rendered with the chat template of the model. Instead of `prompt`. Parts of the type
    `image_url` are for models whose `takes` has `image`."""
    image: NotRequired[str]
    """An image to ask about, for models whose `takes` has it: the request is then one message with this image and
    `prompt`. As `url` in `messages`, or a file of a `multipart/form-data` body."""
    max_tokens: NotRequired[int]
    """Maximum number of tokens to generate. Default: the model’s."""
    temperature: NotRequired[float]
    """0 always takes the most probable token. Default: the model’s."""
    top_p: NotRequired[float]
    """Samples from the most probable tokens whose probabilities add up to this. Default: the model’s."""
    top_k: NotRequired[int]
    """Samples from this many most probable tokens; 0 is all. Default: the model’s."""
    min_p: NotRequired[float]
    """Minimum probability of a token, relative to the most probable one. Default: 0."""
    presence_penalty: NotRequired[float]
    """Penalty for tokens that were generated before. Default: 0."""
    frequency_penalty: NotRequired[float]
    """Penalty for tokens that were generated before, once per occurrence. Default: 0."""
    logit_bias: NotRequired[Mapping[str, float]]
    """Values to add to the logits of tokens, by token id. Default: none."""
    logprobs: NotRequired[bool]
    """Whether to return the log probability of each token. Default: false."""
    top_logprobs: NotRequired[int]
    """Number of most probable alternatives to return for each token. Default: 0."""
    n: int
    """Number of texts; text i has the seed `seed + i`. Default: 1."""
    seed: float
    """The same seed and parameters give the same text. A seed of more than 32 bits is folded to 32; the result has
    the folded one. Default, and -1: random."""
    stop: NotRequired[str | list[str]]
    """Strings at which generation ends; they are not part of the text. Default: none."""
    ignore_eos: NotRequired[bool]
    """Ignore the end token and generate max_tokens. Default: false."""
    response_format: NotRequired[Mapping[str, Any]]
    """Format of every answer: `json_object` is any JSON object, `json_schema` JSON of a schema. Default: text."""
    grammar: NotRequired[str]
    """Grammar of every answer in EBNF (GBNF) whose start rule is `root`. Default: none."""
    regex: NotRequired[str]
    """Regular expression that the full text of every answer matches. Default: none."""
    tools: NotRequired[list[Mapping[str, Any]]]
    """Tools that the model may call, with arguments that match `parameters`; an empty list is none. For models with
    `has_tools`. With `response_format`, `grammar` or `regex`, an answer is either calls or text of that form."""
    tool_choice: NotRequired[Literal["auto", "none", "required"] | Mapping[str, Any]]
    """`auto`: the model may call tools; `none`: it must not; `required`: it must; an object: it must call this one.
    Default: auto."""
    parallel_tool_calls: NotRequired[bool]
    """Whether one answer may have several tool calls. Default: true."""
    max_nfe: NotRequired[int]
    """Block diffusion only: maximum number of model calls. Default: no limit."""
    confidence_threshold: NotRequired[float]
    """Block diffusion only: probability from which a token is kept. Default: the model’s."""
    tokens_per_step: NotRequired[int]
    """Block diffusion only: number of tokens kept in each call, instead of those above the threshold."""


@final
class TextViewUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    """Tokens generated so far, if the request is running or was canceled."""
    total_tokens: int
    cached_tokens: int
    """Prompt tokens that were in the cache."""
    nfe: int
    """Model calls after the prompt, of finished texts."""


@final
class TextView(TypedDict):
    kind: Literal["text"]
    request_id: str
    status: Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]
    is_canceling: bool
    """Running, and will be canceled at its next step."""
    model: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    """Time until which the results can be fetched; null while open."""
    is_pinned: bool
    """True if it is retained for longer than other requests."""
    queue_position: int | None
    """Requests ahead of this one; null once it runs."""
    eta_seconds: NotRequired[TextViewEtaSeconds]
    """Seconds until the end, as a range from measured step times; omitted if no worker has measured any."""
    is_possible: bool
    attempts: int
    """Deliveries to a worker so far."""
    error: NotRequired[Failure]
    retry_of: NotRequired[str]
    """The failed request of which an operator made this retry."""
    retried_as: NotRequired[str]
    """The retry that an operator made of this failed request."""
    urls: TextViewUrls
    tokens: int
    """Tokens written, over all texts of the request."""
    progress: float
    """Share of max_tokens generated so far; 1 if the request has succeeded."""
    seed: int
    texts: list[TextViewTexts]
    """The texts so far; complete once the request has ended."""
    parameters: TextViewParameters
    """A body that reproduces the same texts. For a model that another server runs, only the fields that were sent."""
    usage: TextViewUsage
    finish_reasons: list[Literal["stop", "length"]]
    """One per finished text."""


@final
class ImageModelSizes(TypedDict):
    multiple: int
    min: int
    max: int


@final
class ImageModelSteps(TypedDict):
    min: float
    max: float


@final
class ImageModelGuidance(TypedDict):
    min: float
    max: float


@final
class ImageModelLoras(TypedDict):
    id: str
    rank: int
    name: NotRequired[str]
    """File name, if it cannot be the id."""
    left_out: NotRequired[list[str]]
    """Parts of the adapter that are ignored, such as `text_encoder`, because that part of the model does not support
    adapters."""


@final
class ImageModelExamples(TypedDict):
    prompt: str
    seed: int
    image: str


@final
class ImageModelDefaults(TypedDict):
    size: str
    num_inference_steps: int
    guidance_scale: float
    scheduler: str


@final
class ImageModel(TypedDict):
    kind: Literal["image"]
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    is_possible: bool
    """True if a live worker serves it right now."""
    is_paused: bool
    """True if an operator has paused it: requests wait."""
    pipeline: str
    sizes: ImageModelSizes
    steps: ImageModelSteps
    guidance: ImageModelGuidance
    schedulers: list[str]
    """Values that `scheduler` accepts."""
    max_prompt_tokens: int
    prompt_syntaxes: list[Literal["plain", "webui"]]
    """Values that `prompt_syntax` accepts."""
    takes: NotRequired[list[Literal["image", "mask"]]]
    """Input files that requests may have; absent without any."""
    needs: NotRequired[list[Literal["image", "mask"]]]
    """Input files that each request must have; absent without any."""
    unsupported: NotRequired[list[Literal["negative_prompt", "seed", "guidance_rescale", "strength"]]]
    """Fields that requests must not have, because the server of the model does not support them."""
    upscales: list[Literal[2, 4]]
    """Values that `upscale` accepts; empty if the model has no upscaler."""
    safety_checker: Literal["black", "refuse", None]
    """Effect of the model’s safety checker on a flagged image: `black` replaces it, `refuse` fails the request.
    null: no checker."""
    loras: NotRequired[list[ImageModelLoras]]
    """Adapters that `loras` accepts, with their ranks; absent without any."""
    examples: NotRequired[list[ImageModelExamples]]
    """Prompts that the model draws well with its defaults. `image` is a thumbnail as a data URL. Absent without any."""
    defaults: ImageModelDefaults


@final
class TextModelImages(TypedDict):
    """Images per request. With a minimum of 1, the model answers questions about images only."""
    min: int
    max: int


@final
class TextModelDefaults(TypedDict):
    """Absent for a model that another server runs: that server applies its own."""
    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    confidence_threshold: NotRequired[float]


@final
class TextModel(TypedDict):
    kind: Literal["text"]
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    is_possible: bool
    """True if a live worker serves it right now."""
    is_paused: bool
    """True if an operator has paused it: requests wait."""
    pipeline: str
    mode: Literal["autoregressive", "block_diffusion"]
    max_model_len: NotRequired[int]
    """Maximum tokens of prompt and output together, if known."""
    vocabulary_size: NotRequired[int]
    has_chat_template: bool
    """Whether the model takes `messages`."""
    images: NotRequired[TextModelImages]
    """Images per request. With a minimum of 1, the model answers questions about images only."""
    takes: NotRequired[list[Literal["image"]]]
    """["image"] if messages may have images, else []. Absent if only the server that runs the model knows."""
    has_tools: NotRequired[bool]
    """Whether the model calls tools. Absent if only the server that runs the model knows."""
    deterministic: bool
    """Whether a text has the same bytes regardless of the requests in its batch."""
    deterministic_reason: NotRequired[str]
    block_size: NotRequired[int]
    defaults: NotRequired[TextModelDefaults]
    """Absent for a model that another server runs: that server applies its own."""


@final
class QueuedEvent(TypedDict):
    """Queued; again if its worker is lost or stops."""
    type: Literal["queued"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    queue_position: int
    """Requests that will be dispatched before this one."""
    attempt: int
    """From 1."""


@final
class StartedEvent(TypedDict):
    """A worker started it."""
    type: Literal["started"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    attempt: int
    """From 1."""


@final
class LoadingEvent(TypedDict):
    """Its worker loads the model first."""
    type: Literal["loading"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    expected_seconds: NotRequired[float]
    """Duration of the last load on this worker."""


@final
class FailedEvent(TypedDict):
    """Final."""
    type: Literal["failed"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    error: Failure


@final
class CanceledEvent(TypedDict):
    """Final: a client or an operator canceled it."""
    type: Literal["canceled"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str


@final
class ExpiredEvent(TypedDict):
    """Final: `timeout_s` or `start_timeout_s` elapsed."""
    type: Literal["expired"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str


@final
class ImageProgressEvent(TypedDict):
    """An image advanced."""
    type: Literal["progress"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    step: int
    """Steps done."""
    total_steps: int
    progress: float
    preview: NotRequired[str]
    """At some steps, until the request has ended: a preview as a data URL, for the `src` of an `<img>`."""


@final
class ImageChunkEvent(TypedDict):
    """A chunk of a finished image: join the bytes of all chunks of an index. A later attempt sends an image again."""
    type: Literal["image"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    url: str
    seed: int
    width: int
    height: int
    content_type: str
    bytes: int
    nsfw_content_detected: NotRequired[bool]
    """Result of the model’s safety checker; a flagged image is black. Absent if the model has no checker."""
    chunk_id: str
    chunk_index: int
    """From 0."""
    total_chunks: int
    is_chunked: bool
    is_final: bool
    """The last chunk of the image."""
    b64: str
    """The bytes of the chunk in base64."""


@final
class ImagesSucceededEvent(TypedDict):
    """Final: all images are done."""
    type: Literal["succeeded"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    prompt_tokens_cut: int | None
    """Number of tokens cut from the prompt's end because they exceed the model's limit; with several text encoders,
    the smallest number counts. null before the first image is done."""
    negative_prompt_tokens_cut: int | None
    """The same for the negative prompt; 0 if guidance does not use it."""
    images: list[ImageInfo]


@final
class TextProgressEvent(TypedDict):
    """Tokens so far, at intervals; the text is in `delta` and `snapshot`."""
    type: Literal["progress"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    tokens: int
    max_tokens: NotRequired[int]


@final
class TokenLogprobTop(TypedDict):
    token: str
    logprob: float
    """Natural logarithm."""
    bytes: list[int]
    """UTF-8."""


@final
class TokenLogprob(TypedDict):
    """The probability of a token, and of the most probable ones in its place."""
    token: str
    logprob: float
    """Natural logarithm."""
    bytes: list[int]
    """UTF-8."""
    top: list[TokenLogprobTop]


@final
class DeltaEvent(TypedDict):
    """Text was added at `offset`, and is final."""
    type: Literal["delta"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    offset: int
    """Position in the text, in UTF-16 code units, as in strings of JavaScript."""
    text: str
    token_ids: NotRequired[list[int]]
    nfe: NotRequired[int]
    """Block diffusion: model calls after the prompt, up to here."""
    logprobs: NotRequired[list[TokenLogprob]]
    """One per token, with `logprobs`."""


@final
class SnapshotEvent(TypedDict):
    """The text from `offset` on, which replaces everything after it; `░` is a token that is not decided yet."""
    type: Literal["snapshot"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    offset: int
    """Position in the text, in UTF-16 code units, as in strings of JavaScript."""
    text: str
    token_ids: NotRequired[list[int]]
    nfe: NotRequired[int]
    """Block diffusion: model calls after the prompt, up to here."""
    logprobs: NotRequired[list[TokenLogprob]]
    """One per token, with `logprobs`."""


@final
class ResetEvent(TypedDict):
    """Discard the text from `offset` on: another worker took over and wrote something else. Never sent by a model
    that is `deterministic`."""
    type: Literal["reset"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    offset: int
    """Position in the text, in UTF-16 code units, as in strings of JavaScript."""


class TextEndEvent(TypedDict):
    """A text is finished."""
    type: Literal["text"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    index: int
    """Of the image or text, from 0."""
    bytes: int
    """Of its UTF-8."""
    finish_reason: Literal["stop", "length"]
    stop: NotRequired[str]
    """The stop text that ended it."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    calls: int
    """Model calls after the prompt."""


@final
class TextsSucceededEventUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    """Tokens generated so far, if the request is running or was canceled."""
    total_tokens: int
    cached_tokens: int
    """Prompt tokens that were in the cache."""
    nfe: int
    """Model calls after the prompt, of finished texts."""


@final
class TextsSucceededEvent(TypedDict):
    """Final: all texts are done."""
    type: Literal["succeeded"]
    id: str
    """Position in the events of the request. Increases; numbers may be missing."""
    request_id: str
    timestamp: str
    usage: TextsSucceededEventUsage
    finish_reasons: list[Literal["stop", "length"]]
    """One per finished text."""


@final
class RequestSummaryUrls(TypedDict):
    self: str
    events: str
    cancel: str


@final
class RequestSummary(TypedDict):
    request_id: str
    kind: str
    model: str
    status: Literal["queued", "running", "succeeded", "failed", "canceled", "expired"]
    is_canceling: bool
    """Running, and will be canceled at its next step."""
    created_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None
    """Time until which the results can be fetched; null while open."""
    is_pinned: bool
    """True if it is retained for longer than other requests."""
    prompt: NotRequired[str]
    """The first 300 characters of the prompt; omitted if the server does not store prompts, or the prompt is token
    ids."""
    output_count: int
    """Images or texts that it has once it has succeeded."""
    images: NotRequired[list[ImageInfo]]
    """Finished images; only of an image request."""
    error: NotRequired[Failure]
    urls: RequestSummaryUrls


@final
class RequestPage(TypedDict):
    object: Literal["list"]
    data: list[RequestSummary]
    next_cursor: str | None
    """Value of `cursor` for the next page; null after the last."""


RequestView = (
    ImageView
    | TextView
)
Model = (
    ImageModel
    | TextModel
)
SentEvent = (
    QueuedEvent
    | StartedEvent
    | LoadingEvent
    | FailedEvent
    | CanceledEvent
    | ExpiredEvent
    | ImageProgressEvent
    | ImageChunkEvent
    | ImagesSucceededEvent
    | TextProgressEvent
    | DeltaEvent
    | SnapshotEvent
    | ResetEvent
    | TextEndEvent
    | TextsSucceededEvent
)
