/** What the worker's main process and an engine's process say to each other, over Node's IPC with structured clones. */
import type { DarkroomError, ModelCard, PipelineComponent, PipelineRow, RowRequest } from '@darkroom/core';
import type { EngineOptions } from '../engine/engine.ts';
import type { LoadModelOptions } from '../engine/load-model.ts';
import type { EngineEvent } from '../executor-event.ts';
import type { EngineStatus } from '../executor.ts';

/** What an engine's process is started with: the model's directory, how it is run, and the engine's own. */
export interface EngineProcessOptions extends Pick<EngineOptions<PipelineRow>, 'maxSlots' | 'checkpointEvery'> {
  readonly model: LoadModelOptions;
}

export type MessageToEngine =
  | { readonly type: 'start'; readonly options: EngineProcessOptions }
  | { readonly type: 'submit'; readonly requests: readonly RowRequest[] }
  | { readonly type: 'cancel'; readonly requestId: string }
  /** Answered in the order in which they are asked. */
  | { readonly type: 'health' }
  | { readonly type: 'shutdown'; readonly shouldCheckpoint: boolean };

export type MessageFromEngine =
  | { readonly type: 'ready'; readonly card: ModelCard; readonly components: readonly PipelineComponent[] }
  /** The cause is for the operator's log: ONNX Runtime's own words, which name paths. */
  | { readonly type: 'start-failed'; readonly failure: ConstructorParameters<typeof DarkroomError> }
  | { readonly type: 'events'; readonly events: readonly EngineEvent[] }
  | { readonly type: 'health'; readonly status: EngineStatus };
