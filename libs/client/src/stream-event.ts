import type * as Api from './api-types.ts';
import type { Image } from './answers.ts';
import type { RequestKind } from './requests.ts';

export type {
  CanceledEvent,
  DeltaEvent,
  ExpiredEvent,
  FailedEvent,
  LoadingEvent,
  QueuedEvent,
  ResetEvent,
  SnapshotEvent,
  StartedEvent,
  TokenLogprob,
} from './api-types.ts';

/** `Event`, whose type also names the fields of `Other`, which are always absent: for events of any kind. */
type Without<Other, Event> = Event & { [Field in Exclude<keyof Other, keyof Event>]?: undefined };

/** An image advanced by one step. */
export type ImageProgressEvent = Without<Api.TextProgressEvent, Api.ImageProgressEvent>;
/** Number of tokens written so far; the text comes in `delta` and `snapshot` events. */
export type TextProgressEvent = Without<Api.ImageProgressEvent, Api.TextProgressEvent>;

/** A text is done. Its chunks were received completely, or it was fetched. */
export interface TextEvent extends Api.TextEndEvent {
  /** The complete text. */
  text: string;
}

/**
 * An image is done. Its chunks were received completely, or it was fetched. It may be sent again by a worker that
 * takes over after a `queued` event with a higher `attempt`; the later one is valid.
 */
export interface ImageEvent extends Pick<Api.ImageChunkEvent, 'type' | 'id' | 'request_id' | 'timestamp'>, Image {}

/** Final: all images are done. */
export type ImagesSucceededEvent = Without<Api.TextsSucceededEvent, Api.ImagesSucceededEvent>;
/** Final: all texts are done. */
export type TextsSucceededEvent = Without<Api.ImagesSucceededEvent, Api.TextsSucceededEvent>;

/** Events of every request. */
export type CommonEvent =
  | Api.QueuedEvent
  | Api.StartedEvent
  | Api.LoadingEvent
  | Api.FailedEvent
  | Api.CanceledEvent
  | Api.ExpiredEvent;

/** Events of only one kind of requests. */
export interface EventsOfKind {
  image: ImageProgressEvent | ImageEvent | ImagesSucceededEvent;
  text: TextProgressEvent | Api.DeltaEvent | Api.SnapshotEvent | Api.ResetEvent | TextEvent | TextsSucceededEvent;
}

/** An event of `stream`: of any request, or of one kind, such as `RequestEvent<'text'>`. */
export type RequestEvent<Kind extends RequestKind = RequestKind> = CommonEvent | EventsOfKind[Kind];

/** An event as the API sends it: images in chunks, and texts as workers write them, where chunks may be repeated. */
export type SentEvent = Exclude<RequestEvent, ImageEvent | TextEvent> | Api.ImageChunkEvent | Api.TextEndEvent;
