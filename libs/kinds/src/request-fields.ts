/** The fields that requests of every kind have, and what becomes of them. */
import type { WebhookRequest } from '@darkroom/core';
import type { z } from 'zod';
import type { ReadPictures } from './picture/brought-pictures.ts';
import { finiteNumber, textOf, wholeNumber } from './field-types.ts';
import { webhookFields } from './webhook-fields.ts';

/** Seeds have 32 bits. */
export const maxSeed = 2 ** 32 - 1;
/** The middle of 1 (first) to 10. */
export const defaultPriority = 5;

export const requestFields = {
  model: textOf(1, 64)
    .optional()
    .meta({ description: 'A model of /v1/models. Default: the one the server is configured with, or its first.' }),
  priority: wholeNumber(1, 10)
    .optional()
    .meta({ description: `1 is served first, 10 last. Default: ${defaultPriority}.` }),
  timeout_s: finiteNumber(0.1, 2_592_000, ' of seconds').optional().meta({
    description: 'The request is `expired` if it has not ended by then. Default and maximum are the server’s.',
  }),
  start_timeout_s: finiteNumber(0.1, 2_592_000, ' of seconds')
    .optional()
    .meta({ description: 'The request is `expired` if no worker has taken it by then. Default: timeout_s.' }),
  ...webhookFields,
};

/** A body's values of them. */
export type RequestFields = z.infer<z.ZodObject<typeof requestFields>>;

/** What the server says about requests of every kind. */
export interface RequestOptions {
  /** Seconds. */
  timeoutS: { default: number; max: number };
  /** Whether webhooks may go to private addresses, and the least time between two of progress. */
  webhooks: { allowPrivate: boolean; progressIntervalMs: number };
  /** Whether the files of pictures say how they were made, where a request does not say. Default: false. */
  embedMetadata?: boolean;
  /** The seed of a request that brings none, 0 to 2³²−1. */
  drawSeed: () => number;
  /** What a worker has published for readers of a model's card, by the name that the card has for it. Throws while it is away. */
  readAsset: (model: string, name: string) => Promise<Uint8Array>;
  /** What gets the pictures that a body names; absent where no body may. */
  readPictures?: ReadPictures;
}

/** What a request asks for, with every default filled in. */
export interface ResolvedRequest<Input = unknown> {
  input: Input;
  priority: number;
  timeoutS: number;
  /** Never more than `timeoutS`. */
  startTimeoutS: number;
  webhook: WebhookRequest | undefined;
  /** What came with it and travels beside its input, by name; absent when nothing did. */
  attachments?: ReadonlyMap<string, Uint8Array>;
}
