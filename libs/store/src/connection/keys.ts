/**
 * Every key Darkroom has in Redis (docs/redis-keys.md lists them with type, writer and TTL). All keys of one model carry
 * its hash tag, so a script touches one slot of a cluster and models spread over its nodes.
 */
export interface ModelKeys {
  /** `<prefix>:v2:{<model>}`: what scripts build the other names from. */
  base: string;
  /** Hash: state, facts, attempts, progress, output infos. */
  request(id: string): string;
  /** String: the envelope, JSON. */
  input(id: string): string;
  /** Stream of the request's events, and the channel that carries the same entries to live readers. */
  events(id: string): string;
  /** Hash: sequence → bytes of a preview. */
  previews(id: string): string;
  /** Hash: chunk index → bytes, `info` → JSON. */
  output(id: string, index: number): string;
  checkpoint(id: string, index: number): string;
  /** Sorted set of places in the fair order, by start tag: see fair-order.lua. */
  places: string;
  /** Sorted set of requests that ran before and wait again, by priority and arrival: they go first. */
  front: string;
  /** Sorted set of one owner's waiting requests, by priority and arrival. */
  line(owner: string): string;
  /** Hash: virtual time, totals of what waits, and each owner's places. */
  shares: string;
  /** Sorted set of waiting requests, by when they were admitted, ms. */
  waiting: string;
  /** Hash of owner → queued and running requests. */
  open: string;
  /** Hash of what an owner's requests keep, in bytes: see admit-request.lua. */
  bytes(owner: string): string;
  /** Sorted set of open requests by the next deadline, ms. */
  deadlines: string;
  /** Stream of requests that have failed. */
  dead: string;
  /** Exists while an operator has the model paused. */
  paused: string;
  /** Hash: how many requests ended in which state in a minute since the epoch. */
  minute(minute: number): string;
  /** Hash: what became of requests and how long it took. */
  tally: string;
  workers: Readonly<Record<WorkerList, string>>;
  /** Sorted set of workers by the sweep after which they were last heard of. */
  heard: string;
  /** Hash: number of the last sweep, and when it was. */
  swept: string;
  /** Hash: sums over idle and busy workers. */
  room: string;
  /** The worker that is being emptied for a request that must run alone. */
  reserved: string;
  /** Hash: incarnation, list, capacity, free, info, pace. */
  worker(workerId: string): string;
  /** Stream of batches and cancels, as JSON. */
  inbox(workerId: string): string;
  /** Hash: `<id> <token>` → `<slots> <shape>`. */
  leases(workerId: string): string;
  /** Stream of events that webhooks are yet to be told of, and the channel that says one was added. */
  webhooks: string;
  /** Channel: something changed that a former may act on. */
  wakeup: string;
}

export const workerLists = ['draining', 'loading', 'busy', 'idle'] as const;
export type WorkerList = (typeof workerLists)[number];

/** Hash of model id → card JSON, for the whole system. */
export function modelsKey(prefix: string): string {
  return `${prefix}:models`;
}

/** Hash of what could not be loaded, for the whole system: it may be a model that is not known. */
export function loadFailuresKey(prefix: string): string {
  return `${prefix}:load-failures`;
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
export function modelKeys(prefix: string, model: string): ModelKeys {
  const base = `${prefix}:v2:{${model}}`;
  return {
    base,
    request: (id) => `${base}:request:${id}`,
    input: (id) => `${base}:input:${id}`,
    events: (id) => `${base}:events:${id}`,
    previews: (id) => `${base}:previews:${id}`,
    output: (id, index) => `${base}:output:${id}:${index}`,
    checkpoint: (id, index) => `${base}:checkpoint:${id}:${index}`,
    places: `${base}:places`,
    front: `${base}:front`,
    line: (owner) => `${base}:line:${owner}`,
    shares: `${base}:shares`,
    waiting: `${base}:waiting`,
    open: `${base}:open`,
    bytes: (owner) => `${base}:bytes:${owner}`,
    deadlines: `${base}:deadlines`,
    dead: `${base}:dead`,
    paused: `${base}:paused`,
    minute: (minute) => `${base}:minute:${minute}`,
    tally: `${base}:tally`,
    workers: {
      draining: `${base}:workers:draining`,
      loading: `${base}:workers:loading`,
      busy: `${base}:workers:busy`,
      idle: `${base}:workers:idle`,
    },
    heard: `${base}:workers:heard`,
    swept: `${base}:swept`,
    room: `${base}:room`,
    reserved: `${base}:reserved`,
    worker: (workerId) => `${base}:worker:${workerId}`,
    inbox: (workerId) => `${base}:inbox:${workerId}`,
    leases: (workerId) => `${base}:leases:${workerId}`,
    webhooks: `${base}:webhooks`,
    wakeup: `${base}:wakeup`,
  };
}
