/** Admin routes that send a command to workers and return their replies. */
import { cutText, modelOfShard } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { noStore } from '../http/public-url.ts';
import { count } from '../openapi/api-schemas.ts';
import { audit, notAnAdmin } from './admin-action.ts';
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

interface CallOptions<Answer extends z.ZodType> {
  summary: string;
  description: string;
  schema: Answer;
  view: (reply: WorkerReply) => Omit<z.infer<Answer>, 'worker' | 'model' | 'state'>;
}

function callRoute<Answer extends z.ZodType>(
  command: 'sleep' | 'wake' | 'check_health' | 'memory',
  { summary, description, schema, view }: CallOptions<Answer>,
): Route {
  return {
    method: 'post',
    path: `/admin/workers/{worker}/${command}`,
    summary,
    description: `${description} An id that no worker has selects all workers whose ids begin with it and a dash: those of one start of the worker program.`,
    responses: {
      ...commonErrors,
      200: jsonAnswer(
        'The reply of each worker, after at most 5 seconds.',
        z.strictObject({ answers: z.array(schema) }),
      ),
      403: notAnAdmin,
      404: describeErrorAnswer('No such worker.', workerNotFound('gpu-1')),
    },
    async handle(c, context) {
      const worker = c.req.param('worker') ?? '';
      const answers = await callWorkers(context, worker, command);
      if (answers.length === 0) throw workerNotFound(worker);
      const answered = answers.filter(({ answer }) => answer !== undefined).length;
      audit(c, context, { action: `${command} worker`, worker, outcome: `${answered} of ${answers.length} answered` });
      return c.json({ answers: answers.map((each) => answerView(each, view)) }, 200, noStore);
    },
  };
}

export const workerCallRoutes: readonly Route[] = [
  callRoute('sleep', {
    summary: 'Put a worker to sleep: free the memory of its model',
    description:
      'It first ends its requests and gets no new ones. It stays registered, and loads the model again for its next request.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('wake', {
    summary: 'Wake a worker: load its model now',
    description: 'Loads the model before the next request. Does nothing if the worker is awake.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('check_health', {
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
    summary: 'Read the memory use of a worker',
    description: 'Host memory in bytes, without GPU memory.',
    schema: memorySchema,
    view: ({ processBytes = null, engineBytes = null }) => ({ process_bytes: processBytes, engine_bytes: engineBytes }),
  }),
];

function answerView({ workerId, shard, answer = {} }: WorkerAnswer, view: (reply: WorkerReply) => object): object {
  const reply = answer as WorkerReply;
  return { worker: workerId, model: modelOfShard(shard), state: reply.state ?? null, ...view(reply) };
}

export function workerNotFound(worker: string): ApiError {
  return new ApiError(404, 'worker_not_found', `There is no worker ${cutText(worker)}.`);
}
