/** Request fields of every kind, and the resolved request. */
import type { ModelCard, WebhookRequest } from '@darkroom/core';
import { z } from 'zod';
import type { ReadImage, ReadImages } from './brought-images.ts';
import { finiteNumber, textField, integerField } from './field-types.ts';
import { webhookFields } from './webhook-fields.ts';

/** Maximum seed: 32 bits. */
export const maxSeed = 2 ** 32 - 1;
/** Default priority, between 1 (served first) and 10. */
export const defaultPriority = 5;

export const requestFields = {
  model: textField(1, 64)
    .optional()
    .meta({ description: 'The id of a model in /v1/models. Default: the server’s configured model, or its first.' }),
  priority: integerField(1, 10)
    .optional()
    .meta({ description: `1 is served first, 10 last. Default: ${defaultPriority}.` }),
  timeout_s: finiteNumber(0.1, 2_592_000, ' of seconds').optional().meta({
    description:
      'The request is `expired` if it has not ended within this time. Default: set by the server; at most one day.',
  }),
  start_timeout_s: finiteNumber(0.1, 2_592_000, ' of seconds').optional().meta({
    description: 'The request is `expired` if no worker has started it within this time. Default: timeout_s.',
  }),
  ...webhookFields,
};

/** Fields that OpenAI's clients send with every request. They are ignored and not stored. */
export const ignoredFields = {
  user: z.string({ error: 'text' }).optional().meta({ description: 'Ignored and not stored.' }),
  metadata: z
    .record(z.string(), z.unknown(), { error: 'an object' })
    .optional()
    .meta({ description: 'Ignored and not stored.' }),
};

/** Values of the common request fields in a body. */
export type RequestFields = z.infer<z.ZodObject<typeof requestFields>>;

/** The client that sent a request. Owners take turns at long work on client input. */
export interface Requester {
  /** Owner; `''` for anonymous clients. */
  owner: string;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
}

/** Server settings and services for validating requests of every kind. */
export interface RequestPolicy {
  /** Owner of the request; owners take turns at long work on client input. */
  owner?: string;
  /** Seconds. */
  timeoutS: { default: number; max: number };
  /** Permission of webhooks to private addresses. */
  webhooks: { allowPrivate: boolean };
  /** Returns a random seed for a request without one, 0 to 2³²−1. */
  drawSeed: () => number;
  /** Returns an asset that a worker published for a model, by its name in the card. Throws if unavailable. */
  readAsset: (model: string, name: string) => Promise<Uint8Array>;
  /** Absent if all requests come from one client. */
  requester?: Requester;
  /** Loads the images that a body references; absent if bodies must not reference images. */
  readImages?: ReadImages;
  /** Loads an image of a conversation; absent if bodies must not reference images. */
  readImage?: ReadImage;
  /** All models, which error messages suggest. */
  models?: readonly ModelCard[];
}

/** A validated request with every default filled in. */
export interface ResolvedRequest<Input = unknown> {
  input: Input;
  priority: number;
  timeoutS: number;
  /** At most `timeoutS`. */
  startTimeoutS: number;
  webhook: WebhookRequest | undefined;
  /** Files of the request by name, stored beside its input; absent if there are none. */
  attachments?: ReadonlyMap<string, Uint8Array>;
}
