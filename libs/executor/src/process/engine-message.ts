/** What the worker's main process and an engine's process say to each other, over Node's IPC with structured clones. */
import type { ErrorCode, ModelCard, PipelineComponent } from '@darkroom/core';
import type { LoadModelOptions } from '@darkroom/diffusion';
import type { EngineEvent } from '../executor-event.ts';
import type { ExecutorRequest } from '../executor.ts';

/** What an engine's process is started with. */
export interface EngineProcessOptions {
  /** The model's directory, and how it is run. */
  readonly model: LoadModelOptions;
  /** Room for rows, in the slots that they take; those beyond wait. */
  readonly maxSlots: number;
  /** A checkpoint of each row every so many of its steps; 0 for none. */
  readonly checkpointEvery?: number;
}

export type MessageToEngine =
  | { readonly type: 'start'; readonly options: EngineProcessOptions }
  | { readonly type: 'submit'; readonly requests: readonly ExecutorRequest[] }
  | { readonly type: 'cancel'; readonly requestId: string }
  | { readonly type: 'health'; readonly checkId: number }
  | { readonly type: 'shutdown'; readonly shouldCheckpoint: boolean };

export type MessageFromEngine =
  | { readonly type: 'ready'; readonly card: ModelCard; readonly components: readonly PipelineComponent[] }
  /** `detail` is for the operator's log: ONNX Runtime's own words, which name paths. */
  | { readonly type: 'start-failed'; readonly code: ErrorCode; readonly message: string; readonly detail?: string }
  | { readonly type: 'events'; readonly events: readonly EngineEvent[] }
  | { readonly type: 'health'; readonly checkId: number; readonly slots: number; readonly waitingRequests: number }
  | { readonly type: 'stopped' };
