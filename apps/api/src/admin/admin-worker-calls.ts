/** Calls of workers: each that is meant is asked, and what it says is in the answer. */
import { cutText, modelOfShard } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, errorAnswer, jsonAnswer, type Route } from '../http/api-route.ts';
import { noStore } from '../http/urls.ts';
import { count } from '../v1/api-schemas.ts';
import { audit, notAnAdmin } from './admin-action.ts';
import { callWorkers, type WorkerAnswer } from './call-workers.ts';

/** As workers say it; what they do not know they leave out. */
interface Said {
  state?: 'loading' | 'ready' | 'vacating' | 'asleep' | 'stopping';
  isHealthy?: boolean;
  latencyMs?: number;
  slots?: number;
  waitingRequests?: number;
  processBytes?: number;
  engineBytes?: number;
}

const whose = {
  worker: z.string(),
  model: z.string(),
  state: z.enum(['loading', 'ready', 'vacating', 'asleep', 'stopping']).nullable().openapi({
    description:
      '`vacating`: it gets no more requests, and frees its memory when it has ended those it has. null: it did not answer within 5 seconds.',
  }),
};
const stateSchema = z.strictObject(whose).openapi('WorkerAnswer');
const healthSchema = z
  .strictObject({
    ...whose,
    healthy: z.boolean().openapi({
      description:
        'Its engine answers, or it sleeps. A step that takes longer than 4 seconds keeps an engine from answering.',
    }),
    latency_ms: z.number().min(0).nullable().openapi({ description: 'How long the engine took to answer.' }),
    slots: count.nullable().openapi({ description: 'What its rows take of its room.' }),
    waiting_requests: count.nullable().openapi({ description: 'Those in the engine that wait for room.' }),
  })
  .openapi('WorkerHealth');
const memorySchema = z
  .strictObject({
    ...whose,
    process_bytes: count.nullable().openapi({
      description:
        "Of the worker's process, in which there may be other models: its share of every page (PSS), or what is resident.",
    }),
    engine_bytes: count.nullable().openapi({
      description: 'Of the process that has the model; null if there is none, as while it sleeps.',
    }),
  })
  .openapi('WorkerMemory');

interface CallOptions<Answer extends z.ZodType> {
  summary: string;
  description: string;
  schema: Answer;
  view: (said: Said) => Omit<z.infer<Answer>, 'worker' | 'model' | 'state'>;
}

function callRoute<Answer extends z.ZodType>(
  command: 'sleep' | 'wake' | 'check_health' | 'memory',
  { summary, description, schema, view }: CallOptions<Answer>,
): Route {
  return {
    method: 'post',
    path: `/admin/workers/{worker}/${command}`,
    summary,
    description: `${description} An id that no worker has means all whose ids begin with it and a dash: those of one start of the worker program.`,
    responses: {
      ...commonErrors,
      200: jsonAnswer('What each says, after 5 seconds at most.', z.strictObject({ answers: z.array(schema) })),
      403: notAnAdmin,
      404: errorAnswer('No such worker.', workerNotFound('gpu-1')),
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
    summary: 'Have a worker free the memory of its model',
    description:
      'It gets no more requests until then, and ends those it has. It stays registered, and loads the model again for its next request.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('wake', {
    summary: 'Have a worker load its model now',
    description: 'Without waiting for a request. Nothing happens if it is awake.',
    schema: stateSchema,
    view: () => ({}),
  }),
  callRoute('check_health', {
    summary: 'Ask a worker, and its engine, how they are',
    description: 'Each device process answers for itself.',
    schema: healthSchema,
    view: ({ isHealthy = false, latencyMs = null, slots = null, waitingRequests = null }) => ({
      healthy: isHealthy,
      latency_ms: latencyMs,
      slots,
      waiting_requests: waitingRequests,
    }),
  }),
  callRoute('memory', {
    summary: 'Ask a worker what memory it takes',
    description: "The machine's, in bytes, not that of a GPU.",
    schema: memorySchema,
    view: ({ processBytes = null, engineBytes = null }) => ({ process_bytes: processBytes, engine_bytes: engineBytes }),
  }),
];

function answerView({ workerId, model, answer = {} }: WorkerAnswer, view: (said: Said) => object): object {
  const said = answer as Said;
  return { worker: workerId, model: modelOfShard(model), state: said.state ?? null, ...view(said) };
}

export function workerNotFound(worker: string): ApiError {
  return new ApiError(404, 'worker_not_found', `There is no worker ${cutText(worker)} here.`);
}
