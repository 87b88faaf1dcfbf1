/** Messages between a worker and its engine process, sent over Node's IPC with structured clones. */
import type { DarkroomError, ModelCard, PipelineComponent, PipelineRow, RowRequest } from '@darkroom/core';
import { z } from 'zod';
import type { EngineOptions } from '../engine/engine.ts';
import type { LoadModelOptions } from '../engine-kind.ts';
import type { EngineEvent } from '../executor-event.ts';

/** Options of an engine process: its engine's options, the model's directory and how to run it. */
export interface EngineProcessOptions extends Pick<EngineOptions<PipelineRow>, 'maxSlots' | 'checkpointEvery'> {
  readonly model: LoadModelOptions;
}

export type MessageToEngine =
  | { readonly type: 'start'; readonly options: EngineProcessOptions }
  | { readonly type: 'submit'; readonly requests: readonly RowRequest[] }
  | { readonly type: 'cancel'; readonly requestId: string }
  /** Answered in the order of the requests. */
  | { readonly type: 'health' }
  | { readonly type: 'shutdown'; readonly shouldCheckpoint: boolean };

/** Objects of ours, whose fields the engine process is trusted to fill in. */
const trusted = <Value>() => z.custom<Value>((value) => typeof value === 'object' && value !== null);
const trustedList = <Value>() => z.custom<readonly Value[]>((value) => Array.isArray(value));

export const messageFromEngine = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ready'),
    card: trusted<ModelCard>(),
    components: trustedList<PipelineComponent>(),
  }),
  /** The cause, such as ONNX Runtime's message with paths, is for the operator's log. */
  z.object({ type: z.literal('start-failed'), failure: trusted<ConstructorParameters<typeof DarkroomError>>() }),
  z.object({ type: z.literal('events'), events: trustedList<EngineEvent>() }),
  z.object({ type: z.literal('health'), status: z.object({ slots: z.number(), waitingRequests: z.number() }) }),
]);
export type MessageFromEngine = z.infer<typeof messageFromEngine>;
