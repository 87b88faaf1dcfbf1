import { z } from '@hono/zod-openapi';

const count = z.int().min(0);
const time = z.iso.datetime();

const workerStatusSchema = z
  .strictObject({
    id: z.string(),
    model: z.string(),
    state: z.enum(['loading', 'idle', 'busy', 'draining', 'silent']).openapi({
      description: '`draining`: it gets no more requests. `silent`: no heartbeat, it counts as dead.',
    }),
    loaded: z.boolean().openapi({ description: 'It has its model in memory and is alive.' }),
    draining: z.boolean(),
    stopping: z.boolean().openapi({ description: 'It ends, and gives back what it has; else an operator drains it.' }),
    device: z.string().nullable(),
    host: z.string().nullable(),
    version: z.string().nullable(),
    rows: count.openapi({ description: 'Pictures that can share a step there.' }),
    free_rows: count,
    registered_at: time,
    last_heartbeat_at: time.openapi({ description: 'By the clock of Redis.' }),
    step_ms: z
      .strictObject({ fast: z.number(), slow: z.number() })
      .nullable()
      .openapi({ description: 'How long its last steps took: one in ten was faster, one in ten slower.' }),
  })
  .openapi('WorkerStatus');

const queueStatusSchema = z
  .strictObject({
    model: z.string(),
    paused: z.boolean().openapi({ description: 'By an operator: what is queued waits, what runs goes on.' }),
    queued: count,
    running: count,
    workers: count.openapi({
      description: 'Registered ones, also those beyond the hundred of a model that are listed.',
    }),
    oldest_age_s: z.number().min(0).nullable().openapi({ description: 'Of the oldest waiting request.' }),
    per_minute: z.strictObject({ finished: z.number().min(0), failed: z.number().min(0) }).openapi({
      description: 'Mean of the last five minutes; finished ones include those that were canceled.',
    }),
    ended: z
      .strictObject({ succeeded: count, failed: count, canceled: count, expired: count })
      .openapi({ description: 'Since this Redis began.' }),
    requeued: z
      .strictObject({ worker_lost: count, engine_failed: count, worker_stopped: count })
      .openapi({ description: 'Running requests that went back to the queue, since this Redis began.' }),
  })
  .openapi('QueueStatus');

export const statusSchema = z
  .strictObject({
    time,
    workers: z.array(workerStatusSchema),
    queues: z.array(queueStatusSchema),
    failures: z
      .array(z.strictObject({ model: z.string(), failed_at: time, reason: z.string() }))
      .openapi({ description: 'The last ones of each model, newest first.' }),
    failed_to_load: z
      .array(z.strictObject({ model: z.string(), host: z.string(), failed_at: time, reason: z.string() }))
      .openapi({
        description: 'Models that a worker could not load in the last minute: such a worker is not registered.',
      }),
  })
  .openapi('Status');

export type Status = z.infer<typeof statusSchema>;
