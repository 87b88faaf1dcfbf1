/**
 * Every key Darkroom has in Redis. docs/redis-keys.md says what each is, of which type, who writes it and how long it is kept. All
 * keys of one shard of a model carry its hash tag, so a script touches one slot of a cluster and shards spread over its nodes.
 */

export const workerLists = ['draining', 'loading', 'busy', 'idle', 'asleep'] as const;
export type WorkerList = (typeof workerLists)[number];

/** The queue of deliveries is called this; its keys are `<prefix>:{_webhooks}:queue:…`. */
export const deliveriesName = 'queue';

/** Those of the whole system. */
export function systemKeys(prefix: string) {
  return {
    models: `${prefix}:models`,
    loadFailures: `${prefix}:v2:load-failures`,
    idSecret: `${prefix}:id-secret`,
    webhookSecrets: `${prefix}:{_webhooks}:secrets`,
    /** Where whoever hands out links may write: the API, and who sends webhooks. */
    linkSecret: `${prefix}:{_webhooks}:link-secret`,
    /** BullMQ's prefix of the queue of deliveries: those of all models. */
    deliveriesBase: `${prefix}:{_webhooks}`,
  };
}

/** Those of a model, or of another shard of it than the first. `v2` is the layout: what an older version keeps is neither read nor touched. */
export function modelKeys(prefix: string, model: string) {
  const base = `${prefix}:v2:{${model}}`;
  const ofEach = (kind: string) => (subject: string | number) => `${base}:${kind}:${subject}`;
  const ofOutputs = (kind: string) => (id: string, index: number) => `${base}:${kind}:${id}:${index}`;
  return {
    /** What scripts build the other names from. */
    base,
    asset: `${base}:asset`,
    // By request.
    request: ofEach('request'),
    input: ofEach('input'),
    inputs: ofEach('inputs'),
    events: ofEach('events'),
    previews: ofEach('previews'),
    output: ofOutputs('output'),
    checkpoint: ofOutputs('checkpoint'),
    // By owner.
    line: ofEach('line'),
    bytes: ofEach('bytes'),
    // By worker.
    worker: ofEach('worker'),
    inbox: ofEach('inbox'),
    leases: ofEach('leases'),
    /** By an operator's call. */
    answers: ofEach('answers'),
    /** By minute since the epoch. */
    minute: ofEach('minute'),
    workers: (list: WorkerList) => `${base}:workers:${list}`,
    heard: `${base}:workers:heard`,
    places: `${base}:places`,
    front: `${base}:front`,
    shares: `${base}:shares`,
    waiting: `${base}:waiting`,
    open: `${base}:open`,
    deadlines: `${base}:deadlines`,
    dead: `${base}:dead`,
    paused: `${base}:paused`,
    tally: `${base}:tally`,
    swept: `${base}:swept`,
    room: `${base}:room`,
    reserved: `${base}:reserved`,
    reloading: `${base}:reloading`,
    moved: `${base}:moved`,
    webhooks: `${base}:webhooks`,
    wakeup: `${base}:wakeup`,
  };
}

export type ModelKeys = ReturnType<typeof modelKeys>;
