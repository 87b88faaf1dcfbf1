import type { Device, DtypeChoice, ModelCard, Pipeline, RequestEnvelope, RowOutput } from '@darkroom/core';

/** A model's directory and how to run it. Each kind reads the fields that it knows. */
export interface LoadModelOptions {
  readonly directory: string;
  /** The model's id in requests; default: the directory's name. */
  readonly id?: string;
  readonly dtypes?: DtypeChoice;
  /** In order of preference; default: the CPU. */
  readonly devices?: readonly Device[];
  readonly threads?: number;
  readonly hasLowMemory?: boolean;
  readonly safetyChecker?: 'auto' | 'off' | 'refuse';
  /** Capacity in slots; default unlimited. */
  readonly maxSlots?: number;
  /** Slots whose caches fit memory; default unlimited. */
  readonly memorySlots?: number;
}

/** A model as read from its files, before an engine has loaded it. */
export interface DescribedModel {
  readonly card: ModelCard;
  /** File that API replicas need besides the card. */
  readonly asset?: { readonly name: string; readonly bytes: Uint8Array };
  /** Weight files and graphs that a load reads, relative to the directory. */
  readonly files: readonly string[];
  /** Total size of the weights that a load reads. */
  readonly weightBytes: number;
  /** Cache of one slot, bytes; absent if slots have none. */
  readonly slotBytes?: number;
  /** Log lines for operators: the parts found, and what is wrong or slow. */
  readonly notes: readonly ModelNote[];
}

export interface ModelNote {
  readonly level: 'info' | 'warn';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Settings and memory of a worker. */
export interface CapacityLimits {
  /** Max. rows per step. */
  readonly batchMaxSize: number;
  /** Cache size in slots as configured by the operator, if it is. */
  readonly kvTokens?: number | undefined;
  readonly availableBytes: number;
}

/** A worker's capacity, and the options to load its model with. */
export interface Capacity extends Pick<LoadModelOptions, 'memorySlots' | 'threads'> {
  readonly slots: number;
  /** The card, if the capacity limits what the model can do. */
  readonly card?: ModelCard;
}

/** A file as clients get it. */
export interface EncodedOutput {
  readonly data: Uint8Array;
  readonly contentType: string;
}

/**
 * The engine half of one kind of work: finds out whether a directory holds a model of the kind, loads it as a pipeline,
 * and encodes what the pipeline produces. The API half is `Kind` of libs/kinds. Only `load` loads ONNX Runtime, so that
 * the worker's process does not.
 *
 * @example
 *   const echo: EngineKind = {
 *     id: 'echo',
 *     memory: { processBytes: 50e6, weightFactor: 1 },
 *     detect: (directory) => Promise.resolve(directory.endsWith('-echo')),
 *     describe: ({ id = 'parrot' }) =>
 *       Promise.resolve({
 *         card: { id, created: 0, ownedBy: 'me', kind: 'echo', pipeline: 'EchoPipeline' },
 *         files: [],
 *         weightBytes: 0,
 *         notes: [],
 *       }),
 *     capacity: (_model, { batchMaxSize }) => ({ slots: batchMaxSize }),
 *     load: () => Promise.resolve(pipeline),
 *     encode: ({ data }) => Promise.resolve({ data, contentType: 'text/plain' }),
 *   };
 *   const kinds = new EngineKinds([echo]);
 *   const kind = await kinds.detect('models/my-echo');
 *   const { card } = await kind.describe({ directory: 'models/my-echo' });
 */
export interface EngineKind {
  /** Id of the kind in envelopes and cards; the API half has the same. */
  readonly id: string;
  /** Estimates the memory of an engine on a CPU: the process without weights, bytes, and the factor from file sizes. */
  readonly memory: { readonly processBytes: number; readonly weightFactor: number };
  /** Returns true if the directory holds a model of this kind. Does not check whether it can be loaded. */
  detect(directory: string): Promise<boolean>;
  /**
   * Reads the model's small files and the headers of its graphs.
   *
   * @throws DarkroomError `model_unsupported` naming a file that is missing, truncated or not supported.
   */
  describe(options: LoadModelOptions): Promise<DescribedModel>;
  capacity(model: DescribedModel, limits: CapacityLimits): Capacity;
  /**
   * Loads the model.
   *
   * @throws DarkroomError `model_unsupported` if the directory cannot be served, `engine_failed` or `out_of_memory` if
   * its graphs cannot be loaded.
   */
  load(options: LoadModelOptions): Promise<Pipeline>;
  /** Encodes an output. Outputs of upstreams and modules may be files already: these have a content type. */
  encode(output: RowOutput, request: Pick<RequestEnvelope, 'model' | 'input'>): Promise<EncodedOutput>;
  /** Encodes a preview; absent if the kind has none. */
  encodePreview?(preview: RowOutput): Promise<EncodedOutput>;
}
