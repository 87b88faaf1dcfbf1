import type {
  FieldProblem,
  ModelCard,
  OutputInfo,
  OutputProgress,
  RequestEnvelope,
  RequestEvent,
  RequestStatus,
} from '@darkroom/core';
import type { z } from 'zod';
import type { RequestOptions, ResolvedRequest } from './request-fields.ts';

/** What a request takes, as its envelope says it. */
export type Demand = Pick<RequestEnvelope, 'shapeKey' | 'outputs' | 'slots' | 'cost' | 'bytes'>;

export type ResolveResult<Input = unknown> =
  | { status: 'resolved'; request: ResolvedRequest<Input> }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/** Events that each kind shows in its own way. */
export type KindEvent = Extract<
  RequestEvent,
  { type: 'progress' | 'preview' | 'delta' | 'snapshot' | 'reset' | 'output' }
>;

/** What the url of an output is, where clients fetch it: a link made of the path, or by default the path as it is. */
interface Linked {
  linkOf?: ((path: string) => string) | undefined;
}

export interface ResultViewOptions extends Linked {
  /** The outputs' bytes, where a poll asks for them or a webhook brings them. */
  inlined?: ReadonlyMap<number, Uint8Array> | undefined;
}

export interface EventViewOptions extends Linked {
  /** The bytes that an `output` speaks of; absent for a text's. */
  chunk?: Uint8Array | undefined;
}

/** An event as clients see it: its name and what its data says beside the request and the time. */
export interface EventView {
  name: string;
  data: object;
}

/**
 * What the door knows of one kind of work. Nothing in it runs a model. `Input` is what an envelope of the kind carries,
 * `Card` what a model of the kind says of itself.
 */
export interface Kind<Input = unknown, Card extends ModelCard = ModelCard> {
  /** As envelopes and cards name it. */
  readonly id: string;
  /** `text`: outputs stand in polls and streams as they grow. `bytes`: they are fetched. */
  readonly outputs: 'text' | 'bytes';
  /** All that a body may hold, `requestFields` among it. */
  readonly bodySchema: z.ZodObject;
  /** Checks a body against the schema and then against what its model can do, and fills every default in. */
  resolve(body: unknown, card: Card, options: RequestOptions): ResolveResult<Input> | Promise<ResolveResult<Input>>;
  demandOf(input: Input): Demand;
  /** The field that makes it keep the most bytes: what to lower when they are too many. `body`: what the input was made of. */
  heaviestField(input: Input, body?: unknown): string;
  /** The most steps of one output: for estimates of its end. */
  stepsOf(input: Input): number;
  /** What may be kept of it once the request has ended, on a server that does not keep prompts. */
  withoutPrivate(input: Input): unknown;
  /** What a list of models says beside what every model has. */
  modelView(card: Card): object;
  /** What a poll says beside `resultView` and what every request has. `texts`: what stands of each output of a text. */
  requestView(request: RequestStatus, texts: readonly string[]): object;
  /** What came of it, in polls, at the end of streams and in webhooks. */
  resultView(id: string, outputs: readonly OutputInfo[], options?: ResultViewOptions): object;
  /** In streams and webhooks. */
  progressView(progress: OutputProgress): object;
  /** In streams. */
  eventView(id: string, event: KindEvent, options?: EventViewOptions): EventView;
}
