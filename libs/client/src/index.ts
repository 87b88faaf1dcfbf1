export { createClient, type Client, type SignalOptions, type StreamOptions } from './client.ts';
export { ClientError, type ClientErrorOptions } from './client-error.ts';
export type { ClientOptions } from './client-options.ts';
export type { SubmitOptions } from './submit-request.ts';
export type { Model } from './model.ts';
export type { Picture } from './picture.ts';
export type { OutputFormat, PictureRequest, PreviewRequest } from './picture-request.ts';
export type {
  CanceledEvent,
  ExpiredEvent,
  FailedEvent,
  ImageEvent,
  ProgressEvent,
  QueuedEvent,
  RequestEvent,
  StartedEvent,
  SucceededEvent,
} from './request-event.ts';
export { isEnded } from './request-view.ts';
export type {
  AcceptedRequest,
  CanceledRequest,
  EndedRequest,
  EndedStatus,
  EtaSeconds,
  ImageInfo,
  RequestFailure,
  RequestStatus,
  RequestUrls,
  RequestView,
} from './request-view.ts';
