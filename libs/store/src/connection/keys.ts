/**
 * Every key Darkroom has in Redis (docs/redis-keys.md lists them with type, writer and TTL). All keys of one model carry
 * its hash tag, so a script touches one slot of a cluster and models spread over its nodes.
 */

export const workerLists = ['draining', 'loading', 'busy', 'idle'] as const;
export type WorkerList = (typeof workerLists)[number];

/** Hash of model id → card JSON, for the whole system. */
export function modelsKey(prefix: string): string {
  return `${prefix}:models`;
}

/** Hash of what could not be loaded, for the whole system: it may be a model that is not known. */
export function loadFailuresKey(prefix: string): string {
  return `${prefix}:v2:load-failures`;
}

/** What request ids are authenticated with, for the whole system. */
export function idSecretKey(prefix: string): string {
  return `${prefix}:id-secret`;
}

/** BullMQ's prefix of the queue of deliveries: those of all models. */
export function deliveriesBase(prefix: string): string {
  return `${prefix}:{_webhooks}`;
}

/** The queue of deliveries is called this; its keys are `<prefix>:{_webhooks}:queue:…`. */
export const deliveriesName = 'queue';

/** Hash of owner → the secret its webhooks are signed with. */
export function webhookSecretsKey(prefix: string): string {
  return `${deliveriesBase(prefix)}:secrets`;
}

/** `v2` is the layout: what an older version keeps is neither read nor touched. */
export function modelKeys(prefix: string, model: string) {
  const base = `${prefix}:v2:{${model}}`;
  return {
    /** `<prefix>:v2:{<model>}`: what scripts build the other names from. */
    base,
    /** Hash: state, facts, attempts, progress, output infos. */
    request: (id: string) => `${base}:request:${id}`,
    /** String: the envelope, JSON. */
    input: (id: string) => `${base}:input:${id}`,
    /** Stream of the request's events, and the channel that carries the same entries to live readers. */
    events: (id: string) => `${base}:events:${id}`,
    /** Hash: sequence → bytes of a preview. */
    previews: (id: string) => `${base}:previews:${id}`,
    /** Hash: chunk index → bytes, `info` → JSON. */
    output: (id: string, index: number) => `${base}:output:${id}:${index}`,
    checkpoint: (id: string, index: number) => `${base}:checkpoint:${id}:${index}`,
    /** Sorted set of places in the fair order, by start tag: see fair-order.lua. */
    places: `${base}:places`,
    /** Sorted set of requests that ran before and wait again, by priority and arrival: they go first. */
    front: `${base}:front`,
    /** Sorted set of one owner's waiting requests, by priority and arrival. */
    line: (owner: string) => `${base}:line:${owner}`,
    /** Hash: virtual time, totals of what waits, and each owner's places. */
    shares: `${base}:shares`,
    /** Sorted set of waiting requests, by when they were admitted, ms. */
    waiting: `${base}:waiting`,
    /** Hash of owner → queued and running requests. */
    open: `${base}:open`,
    /** Hash of what an owner's requests keep, in bytes: see admit-request.lua. */
    bytes: (owner: string) => `${base}:bytes:${owner}`,
    /** Sorted set of open requests by the next deadline, ms. */
    deadlines: `${base}:deadlines`,
    /** Stream of requests that have failed. */
    dead: `${base}:dead`,
    /** Exists while an operator has the model paused. */
    paused: `${base}:paused`,
    /** Hash: how many requests ended in which state in a minute since the epoch. */
    minute: (minute: number) => `${base}:minute:${minute}`,
    /** Hash: what became of requests and how long it took. */
    tally: `${base}:tally`,
    workers: {
      draining: `${base}:workers:draining`,
      loading: `${base}:workers:loading`,
      busy: `${base}:workers:busy`,
      idle: `${base}:workers:idle`,
    },
    /** Sorted set of workers by the sweep after which they were last heard of. */
    heard: `${base}:workers:heard`,
    /** Hash: number of the last sweep, and when it was. */
    swept: `${base}:swept`,
    /** Hash: sums over idle and busy workers. */
    room: `${base}:room`,
    /** The worker that is being emptied for a request that must run alone. */
    reserved: `${base}:reserved`,
    /** Hash: incarnation, list, capacity, free, info, pace. */
    worker: (workerId: string) => `${base}:worker:${workerId}`,
    /** Stream of batches and cancels, as JSON. */
    inbox: (workerId: string) => `${base}:inbox:${workerId}`,
    /** Hash: `<id> <token>` → `<slots> <shape>`. */
    leases: (workerId: string) => `${base}:leases:${workerId}`,
    /** Stream of events that webhooks are yet to be told of, and the channel that says one was added. */
    webhooks: `${base}:webhooks`,
    /** Channel: something changed that a former may act on. */
    wakeup: `${base}:wakeup`,
  };
}

export type ModelKeys = ReturnType<typeof modelKeys>;
