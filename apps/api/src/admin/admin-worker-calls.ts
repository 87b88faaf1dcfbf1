/** Admin routes that send a command to workers and return their replies. */
import { cutText, fieldProblems, modelOfShard } from '@darkroom/core';
import type { EngineCall } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { readJsonBody } from '../body/read-json-body.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, invalidFields } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { noStore } from '../http/public-url.ts';
import { count } from '../openapi/api-schemas.ts';
import { audit, bodyErrors, maxBodyBytes, notAnAdmin } from './admin-action.ts';
import { callWorkers, type WorkerAnswer } from './call-workers.ts';

/** Reply of a worker; unknown fields are missing. */
interface WorkerReply {
  state?: 'loading' | 'ready' | 'vacating' | 'asleep' | 'stopping';
  isHealthy?: boolean;
  latencyMs?: number;
  slots?: number;
  waitingRequests?: number;
  processBytes?: number;
  engineBytes?: number;
  result?: unknown;
  error?: string;
}

const workerFields = {
  worker: z.string(),
  model: z.string(),
  state: z.enum(['loading', 'ready', 'vacating', 'asleep', 'stopping']).nullable().openapi({
    description:
      '`vacating`: it gets no new requests, and frees its memory once its requests have ended. null: no answer within 5 seconds.',
  }),
};
const stateSchema = z.strictObject(workerFields).openapi('WorkerAnswer');
const healthSchema = z
  .strictObject({
    ...workerFields,
    healthy: z.boolean().openapi({
      description:
        'True if its engine answers or it sleeps. An engine cannot answer during a step, so steps of more than 4 seconds report false.',
    }),
    latency_ms: z.number().min(0).nullable().openapi({ description: 'Response time of the engine.' }),
    slots: count.nullable().openapi({ description: 'Slots that its rows use.' }),
    waiting_requests: count.nullable().openapi({ description: 'Requests in the engine that wait for slots.' }),
  })
  .openapi('WorkerHealth');
const memorySchema = z
  .strictObject({
    ...workerFields,
    process_bytes: count.nullable().openapi({
      description:
        "Memory of the worker's process, which other models may share: proportional set size (PSS) or resident set size.",
    }),
    engine_bytes: count.nullable().openapi({
      description: 'Memory of the engine process; null if there is none, such as while it sleeps.',
    }),
  })
  .openapi('WorkerMemory');

const resultSchema = z
  .strictObject({
    ...workerFields,
    result: z.unknown().openapi({ description: 'Result of the method as JSON; null if there is none.' }),
    error: z.string().nullable().openapi({ description: 'Why there is no result, such as the error of the method.' }),
  })
  .openapi('WorkerResult');
const maxMethodLength = 100;
const methodExpected = `a text of 1 to ${maxMethodLength} characters`;
const engineCallSchema = z
  .strictObject({
    method: z.string(methodExpected).min(1, methodExpected).max(maxMethodLength, methodExpected).openapi({
      description: 'Name of a method of the engine.',
    }),
    parameters: z.record(z.string(), z.unknown(), 'an object').nullish().openapi({
      description: 'Its parameters by name; none by default.',
    }),
  })
  .openapi('WorkerRpc');
interface CallOptions<Answer extends z.ZodType> {
  operationId: string;
  summary: string;
  description: string;
  schema: Answer;
  /** Reads the call of a method from the body. */
  readCall?: (c: ApiCall) => Promise<EngineCall>;
  view: (reply: WorkerReply) => Omit<z.infer<Answer>, 'worker' | 'model' | 'state'>;
}

function callRoute<Answer extends z.ZodType>(
  command: 'sleep' | 'wake' | 'check_health' | 'memory' | 'rpc',
  { operationId, summary, description, schema, readCall, view }: CallOptions<Answer>,
): Route {
  return {
    method: 'post',
    path: `/admin/workers/{worker}/${command}`,
    operationId,
    tag: 'Admin',
    summary,
    description: `${description} An id that no worker has selects all workers whose ids begin with it and a dash: those of one start of the worker program.`,
    ...(readCall && {
      request: { body: { required: true, content: { 'application/json': { schema: engineCallSchema } } } },
    }),
    responses: {
      ...commonErrors,
      ...(readCall && bodyErrors),
      200: jsonAnswer(
        'The reply of each worker, after at most 5 seconds.',
        z.strictObject({ answers: z.array(schema) }),
      ),
      403: notAnAdmin,
      404: describeErrorAnswer('No such worker.', workerNotFound('gpu-1')),
    },
    async handle(c, context) {
      const worker = c.req.param('worker') ?? '';
      const rpc = await readCall?.(c);
      const answers = await callWorkers(context, worker, { type: command, ...(rpc && { rpc }) });
      if (answers.length === 0) throw workerNotFound(worker);
      const answered = answers.filter(({ answer }) => answer !== undefined).length;
      const outcome = `${answered} of ${answers.length} answered`;
      audit(c, context, { action: `${command} worker`, worker, outcome, ...(rpc && { method: rpc.method }) });
      return c.json({ answers: answers.map((each) => answerView(each, view)) }, 200, noStore);
    },
  };
}

export const workerCallRoutes: readonly Route[] = [
  callRoute('sleep', {
    operationId: 'sleepWorker',
    summary: 'Put a worker to sleep: free the memory of its model',
    description:
      'It first ends its requests and gets no new ones. It stays registered, and loads the model again for its next request.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('wake', {
    operationId: 'wakeWorker',
    summary: 'Wake a worker: load its model now',
    description: 'Loads the model before the next request. Does nothing if the worker is awake.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('check_health', {
    operationId: 'checkWorkerHealth',
    summary: 'Check the health of a worker and its engine',
    description: 'Each device process answers separately.',
    schema: healthSchema,
    view: ({ isHealthy = false, latencyMs = null, slots = null, waitingRequests = null }) => ({
      healthy: isHealthy,
      latency_ms: latencyMs,
      slots,
      waiting_requests: waitingRequests,
    }),
  }),
  callRoute('memory', {
    operationId: 'getWorkerMemory',
    summary: 'Read the memory use of a worker',
    description: 'Host memory in bytes, without GPU memory.',
    schema: memorySchema,
    view: ({ processBytes = null, engineBytes = null }) => ({ process_bytes: processBytes, engine_bytes: engineBytes }),
  }),
  callRoute('rpc', {
    operationId: 'callWorker',
    summary: "Call a method of a worker's engine",
    description:
      'For engines in Python that offer methods. The worker calls it between two steps, and waits 4 seconds for its result, which has at most 64 KiB.',
    schema: resultSchema,
    readCall: readEngineCall,
    view: ({ result = null, error = null }) => ({ result, error }),
  }),
];

async function readEngineCall(c: ApiCall): Promise<EngineCall> {
  const body = await readJsonBody(c, maxBodyBytes);
  const { data, error } = engineCallSchema.safeParse(body);
  if (error) throw invalidFields(fieldProblems(error.issues, { body, known: ['method', 'parameters'] }));
  return { method: data.method, parameters: data.parameters ?? {} };
}

function answerView({ workerId, shard, answer = {} }: WorkerAnswer, view: (reply: WorkerReply) => object): object {
  const reply = answer as WorkerReply;
  return { worker: workerId, model: modelOfShard(shard), state: reply.state ?? null, ...view(reply) };
}

export function workerNotFound(worker: string): ApiError {
  return new ApiError(404, 'worker_not_found', `There is no worker ${cutText(worker)}.`);
}
