/** Messages between a worker and an engine in another language, sent as frames: docs/engine-protocol.md. */
import { z } from 'zod';

export const protocolVersion = 1;

/** Values that an engine's message may hold for one row and step. */
const maxValues = 64;
const maxTextLength = 8000;
const maxMethods = 100;

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array).meta({ description: 'bytes' });
const errorFields = {
  code: z.enum(['invalid_request', 'out_of_memory', 'error']),
  message: z.string().max(maxTextLength),
  stack: z.string().max(maxTextLength),
};
const error = z.object(errorFields);
export type EngineError = z.infer<typeof error>;

const rowState = z.object({
  isDone: z.boolean(),
  /** Rows of equal shapes share steps. */
  shape: z.string().max(200),
  stepsLeft: z.int().min(0).optional(),
});
export type RowState = z.infer<typeof rowState>;

const report = z.union([
  z.object({ error }),
  z.object({ values: z.array(z.unknown()).max(maxValues), state: rowState }),
]);
export type RowReport = z.infer<typeof report>;

/** Methods of an engine, with the schemas of their results. */
export const results = {
  create: z.object({ isResumed: z.boolean(), state: rowState }),
  step: z.array(report),
  finish: z.unknown(),
  checkpoint: bytes.nullable(),
  health: z.null(),
  rpc: z.unknown(),
} as const;
export type MethodName = keyof typeof results;
export type ResultOf<Name extends MethodName> = z.infer<(typeof results)[Name]>;

/** Number of a row or a call, chosen by the worker. */
const number = z.int().min(0);
const rowOnly = { row: number };

/** Parameters of the methods. */
const parameters = {
  create: {
    row: number,
    index: z.int().min(0),
    seed: z.int().min(0),
    input: z.unknown(),
    checkpoint: bytes.optional(),
  },
  step: { rows: z.array(number) },
  finish: rowOnly,
  checkpoint: rowOnly,
  health: {},
  rpc: { method: z.string(), parameters: z.record(z.string(), z.unknown()) },
} as const satisfies Readonly<Record<MethodName, z.ZodRawShape>>;
export type ParametersOf<Name extends MethodName> = z.input<z.ZodObject<(typeof parameters)[Name]>>;

function call<Name extends MethodName>(type: Name) {
  return z.object({ type: z.literal(type), call: number, ...parameters[type] });
}

/** Message to an engine. Calls are handled one at a time, in their order, and each gets a reply. */
export const messageToEngine = z.union([
  z.object({ type: z.literal('start'), version: z.literal(protocolVersion), module: z.string(), model: z.string() }),
  call('create'),
  call('step'),
  call('finish'),
  call('checkpoint'),
  call('health'),
  call('rpc'),
  z.object({ type: z.literal('release'), ...rowOnly }),
  z.object({ type: z.literal('close') }),
]);
export type MessageToEngine = z.input<typeof messageToEngine>;

export const messageFromEngine = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('ready'),
    version: z.literal(protocolVersion),
    card: z.unknown(),
    slots: z.unknown(),
    /** Names for `rpc`. */
    methods: z.array(z.string().max(100)).max(maxMethods),
  }),
  /** The engine cannot start. `thrown` is the module's own message, for the operator. */
  z.object({ type: z.literal('unfit'), message: z.string(), thrown: z.string() }),
  z.object({ type: z.literal('reply'), call: z.int(), value: z.unknown() }),
  z.object({ type: z.literal('error'), call: z.int(), ...errorFields }),
]);
export type MessageFromEngine = z.infer<typeof messageFromEngine>;
