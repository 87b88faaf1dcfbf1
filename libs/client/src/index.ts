export * from './answers.ts';
export type {
  EndedStatus,
  EtaSeconds,
  ModelBase,
  RequestFailure,
  RequestStatus,
  RequestUrls,
  RequestViewBase,
} from './base-answers.ts';
export { ClientError, type ClientErrorOptions } from './client-error.ts';
export { createClient, type Client, type SignalOptions, type StreamOptions, type SubmitOptions } from './client.ts';
export type { ClientOptions } from './options.ts';
export { readMetadata } from './pictures/metadata/read-metadata.ts';
export type { OutputFormat, PictureRequest, PreviewRequest } from './pictures/picture-request.ts';
export type { RequestOptions } from './request-options.ts';
export type * from './stream-event.ts';
export type * from './texts/text-answers.ts';
export type * from './texts/text-form.ts';
export type { TextMessage, TextRequest } from './texts/text-request.ts';
