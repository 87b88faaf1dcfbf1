export * from './answers.ts';
export { ClientError, type ClientErrorOptions } from './client-error.ts';
export { createClient, drawIdempotencyKey, type Client, type StreamOptions } from './client.ts';
export type { ClientOptions, SignalOptions, SubmitOptions } from './options.ts';
export { readMetadata } from './metadata/read-metadata.ts';
export type * from './requests.ts';
export type * from './stream-event.ts';
export type { Submit } from './submit.ts';
export { textAfter, type TextChange } from './output-text.ts';
