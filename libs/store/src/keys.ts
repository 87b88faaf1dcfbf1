/**
 * Every key Darkroom has in Redis (docs/redis-keys.md lists them with type, writer and TTL). All keys of one model carry
 * its hash tag, so a script touches one slot of a cluster and models spread over its nodes.
 */
export interface ModelKeys {
  /** `<prefix>:{<model>}`: BullMQ's prefix, and what scripts build the other names from. */
  base: string;
  /** BullMQ's job hash and its lock, whose value is the delivery's token: the fence. */
  job(id: string): string;
  lock(id: string): string;
  /** Hash: state, envelope, attempts, progress, output infos. */
  request(id: string): string;
  /** Stream of the request's events, and the channel that carries the same entries to live readers. */
  events(id: string): string;
  /** Hash: chunk index → bytes, `info` → JSON. */
  output(id: string, index: number): string;
  checkpoint(id: string, index: number): string;
  /** Outlives the request, so that an id whose time is over is told from one that never was. */
  gone(id: string): string;
  /** Sorted set of waiting requests in dispatch order: by start tag, see queue-order.lua. */
  queued: string;
  /** Sorted set of one owner's waiting requests that have not been chosen, by priority and arrival. */
  line(owner: string): string;
  /** Set of owners with a line. */
  lines: string;
  /** Hash: virtual time, when each owner's last service ends in it, and a counter of choices. */
  shares: string;
  /** Sorted set of how many jobs formers are taking right now, by when that is no longer believed. */
  takings: string;
  /** Set of one owner's queued and running requests. */
  open(owner: string): string;
  /** Sorted set of open requests by the next deadline, ms. */
  deadlines: string;
  /** Counter behind the order of arrival. */
  arrivals: string;
  /** Hash: what became of requests and how long it took. */
  tally: string;
  workers: Readonly<Record<'loading' | 'idle' | 'busy' | 'draining', string>>;
  /** The worker that is being emptied for a request that must run alone. */
  reserved: string;
  /** Hash: incarnation, capacity, free, info. */
  worker(workerId: string): string;
  /** Exists while heartbeats come. */
  alive(workerId: string): string;
  /** Which life of it an operator had drained before it was buried. */
  drained(workerId: string): string;
  /** List of batches and cancels, as JSON. */
  inbox(workerId: string): string;
  /** Hash: `<id> <token>` → slots. */
  leases(workerId: string): string;
  /** Hash: when the last sweep for dead workers was, and until when silent ones are forgiven. */
  swept: string;
  /** Stream of events that webhooks are yet to be told of, and the channel that says one was added. */
  webhooks: string;
  /** Channel: something changed that a former may act on. */
  wakeup: string;
}

/** The BullMQ queue of a model is always called this; its keys are `<base>:queue:…`. */
export const queueName = 'queue';

/** Hash of model id → card JSON, for the whole system. */
export function modelsKey(prefix: string): string {
  return `${prefix}:models`;
}

/** Hash of what could not be loaded, for the whole system: it may be a model that is not known. */
export function loadFailuresKey(prefix: string): string {
  return `${prefix}:load-failures`;
}

/** Stands for a model where keys belong to the webhooks of all models; no model can be called so. */
export const webhooksTag = '_webhooks';

/** Hash of owner → the secret its webhooks are signed with. */
export function webhookSecretsKey(prefix: string): string {
  return `${prefix}:{${webhooksTag}}:secrets`;
}

export function modelKeys(prefix: string, model: string): ModelKeys {
  const base = `${prefix}:{${model}}`;
  return {
    base,
    job: (id) => `${base}:${queueName}:${id}`,
    lock: (id) => `${base}:${queueName}:${id}:lock`,
    request: (id) => `${base}:request:${id}`,
    events: (id) => `${base}:events:${id}`,
    output: (id, index) => `${base}:output:${id}:${index}`,
    checkpoint: (id, index) => `${base}:checkpoint:${id}:${index}`,
    gone: (id) => `${base}:gone:${id}`,
    queued: `${base}:queued`,
    line: (owner) => `${base}:line:${owner}`,
    lines: `${base}:lines`,
    shares: `${base}:shares`,
    takings: `${base}:takings`,
    open: (owner) => `${base}:open:${owner}`,
    deadlines: `${base}:deadlines`,
    arrivals: `${base}:arrivals`,
    tally: `${base}:tally`,
    workers: {
      loading: `${base}:workers:loading`,
      idle: `${base}:workers:idle`,
      busy: `${base}:workers:busy`,
      draining: `${base}:workers:draining`,
    },
    reserved: `${base}:workers:reserved`,
    worker: (workerId) => `${base}:worker:${workerId}`,
    alive: (workerId) => `${base}:alive:${workerId}`,
    drained: (workerId) => `${base}:drained:${workerId}`,
    inbox: (workerId) => `${base}:inbox:${workerId}`,
    leases: (workerId) => `${base}:leases:${workerId}`,
    swept: `${base}:swept`,
    webhooks: `${base}:webhooks`,
    wakeup: `${base}:wakeup`,
  };
}
