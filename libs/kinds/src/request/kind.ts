import type {
  FieldProblem,
  ModelCard,
  OutputInfo,
  OutputProgress,
  RequestEnvelope,
  StoredEvent,
  RequestSnapshot,
} from '@darkroom/core';
import type { z } from 'zod';
import type { RequestPolicy, ResolvedRequest } from './request-fields.ts';

/** Resources that a request needs, as in its envelope. */
export type Demand = Pick<RequestEnvelope, 'shapeKey' | 'outputs' | 'slots' | 'cost'>;

export type ResolveResult<Input = unknown> =
  | { status: 'resolved'; request: ResolvedRequest<Input> }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/** Events with a kind-specific view. */
export type KindEvent = Extract<
  StoredEvent,
  { type: 'progress' | 'preview' | 'delta' | 'snapshot' | 'reset' | 'output' }
>;

/** Functions that convert paths of the API to URLs; by default paths stay unchanged. */
interface Linked {
  /** Returns the URL of an output, which may be a signed link. */
  linkOf?: ((path: string) => string) | undefined;
  /** Returns any other URL. */
  urlOf?: ((path: string) => string) | undefined;
}

export interface ResultViewOptions extends Linked {
  /** Bytes of outputs to include, if a poll requests them or a webhook contains them. */
  inlined?: ReadonlyMap<number, Uint8Array> | undefined;
}

export interface EventViewOptions extends Linked {
  /** The bytes of an `output` event's chunk; absent for texts. */
  chunk?: Uint8Array | undefined;
}

/** An event as clients see it: its name, and its data except request id and time. */
export interface EventView {
  name: string;
  data: object;
}

/**
 * The API half of one kind of work; it has no model code. `Input` is the validated input in an envelope of the kind,
 * `Card` the description of a model of the kind.
 *
 * @example
 *   const bodySchema = z.strictObject({ ...requestFields, prompt: textField(1, 100) });
 *   const echo: Kind<{ prompt: string }> = {
 *     id: 'echo',
 *     outputs: 'text',
 *     bodySchema,
 *     resolve: (body, _card, options) =>
 *       resolveBody(body, {
 *         schema: bodySchema,
 *         options,
 *         problemsOf: () => [],
 *         inputOf: ({ prompt }) => ({ prompt }),
 *       }),
 *     demandOf: ({ prompt }) => ({ shapeKey: 'echo', outputs: 1, slots: 1, cost: prompt.length }),
 *     stepsOf: ({ prompt }) => prompt.length,
 *     withoutPrivate: () => ({}),
 *     modelView: () => ({}),
 *     requestView: (_request, [text = '']) => ({ text }),
 *     resultView: () => ({}),
 *     progressView: ({ done }) => ({ characters: done }),
 *     eventView: (_id, event) => ({ name: event.type, data: 'text' in event ? { text: event.text } : {} }),
 *   };
 */
export interface Kind<Input = unknown, Card extends ModelCard = ModelCard> {
  /** Id of the kind in envelopes and cards. */
  readonly id: string;
  /** `text`: polls and streams contain the outputs as they grow. `bytes`: clients fetch the outputs. */
  readonly outputs: 'text' | 'bytes';
  /** Schema of the request body, with `requestFields`. */
  readonly bodySchema: z.ZodObject;
  /** Validates a body against the schema and the capabilities of its model, and fills in every default. */
  resolve(body: unknown, card: Card, options: RequestPolicy): ResolveResult<Input> | Promise<ResolveResult<Input>>;
  demandOf(input: Input): Demand;
  /** Returns the maximum steps of one output, to estimate its end. */
  stepsOf(input: Input): number;
  /** Returns the input without private fields, to store after the end if the server does not retain prompts. */
  withoutPrivate(input: Input): unknown;
  /** Returns the kind-specific fields of a model in the list of models. */
  modelView(card: Card): object;
  /** Returns the kind-specific fields of a poll, except those of `resultView`. `texts`: the texts so far. */
  requestView(request: RequestSnapshot, texts: readonly string[], options?: Pick<Linked, 'urlOf'>): object;
  /** Returns the result for polls, ends of streams and webhooks. */
  resultView(id: string, outputs: readonly OutputInfo[], options?: ResultViewOptions): object;
  /** Returns the progress for streams and webhooks. */
  progressView(progress: OutputProgress): object;
  /** Returns an event for streams. */
  eventView(id: string, event: KindEvent, options?: EventViewOptions): EventView;
}
