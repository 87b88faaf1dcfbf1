/**
 * Names of all Redis keys. docs/redis-keys.md lists the type, writer and TTL of each. All keys of one shard of a model
 * carry its hash tag, so a script touches one slot of a Cluster and shards spread over its nodes.
 */

export const workerLists = ['draining', 'loading', 'busy', 'idle', 'asleep'] as const;
export type WorkerList = (typeof workerLists)[number];

/** Name of the BullMQ queue of webhook deliveries; its keys are `<prefix>:{_webhooks}:queue:…`. */
export const deliveriesName = 'queue';

/** Returns the keys that are shared by all models. */
export function systemKeys(prefix: string) {
  return {
    models: `${prefix}:models`,
    loadFailures: `${prefix}:v3:load-failures`,
    idSecret: `${prefix}:id-secret`,
    apiKeys: `${prefix}:api-keys`,
    webhookSecrets: `${prefix}:{_webhooks}:secrets`,
    /** In the webhooks slot: processes that create links (API and webhook-sender) may write there. */
    linkSecret: `${prefix}:{_webhooks}:link-secret`,
    /** BullMQ's key prefix for the queue of deliveries of all models. */
    deliveriesBase: `${prefix}:{_webhooks}`,
    /** Base of the keys of uploaded files: `owner:<owner>` and `data:<id>`. */
    filesBase: `${prefix}:{_files}`,
  };
}

/**
 * Returns the keys of one shard of a model. `v3` is the version of the layout; keys of other versions are not touched.
 */
export function modelKeys(prefix: string, model: string) {
  const base = `${prefix}:v3:{${model}}`;
  const ofEach = (kind: string) => (subject: string | number) => `${base}:${kind}:${subject}`;
  const ofOutputs = (kind: string) => (id: string, index: number) => `${base}:${kind}:${id}:${index}`;
  return {
    /** Passed to scripts, which build all other names from it. */
    base,
    asset: `${base}:asset`,
    // Per request.
    request: ofEach('request'),
    input: ofEach('input'),
    inputs: ofEach('inputs'),
    events: ofEach('events'),
    previews: ofEach('previews'),
    output: ofOutputs('output'),
    checkpoint: ofOutputs('checkpoint'),
    // Per owner.
    queued: ofEach('queued'),
    bytes: ofEach('bytes'),
    listed: ofEach('listed'),
    expiring: ofEach('expiring'),
    // Per worker.
    worker: ofEach('worker'),
    inbox: ofEach('inbox'),
    leases: ofEach('leases'),
    /** Replies of workers, per operator's call. */
    answers: ofEach('answers'),
    /** Ended requests, per minute since the epoch. */
    minute: ofEach('minute'),
    workers: (list: WorkerList) => `${base}:workers:${list}`,
    heartbeats: `${base}:workers:heard`,
    places: `${base}:places`,
    front: `${base}:front`,
    shares: `${base}:shares`,
    waiting: `${base}:waiting`,
    open: `${base}:open`,
    deadlines: `${base}:deadlines`,
    dead: `${base}:dead`,
    paused: `${base}:paused`,
    counters: `${base}:counters`,
    swept: `${base}:swept`,
    capacity: `${base}:capacity`,
    reserved: `${base}:reserved`,
    restarting: `${base}:restarting`,
    moved: `${base}:moved`,
    forgotten: `${base}:forgotten`,
    webhooks: `${base}:webhooks`,
    wakeup: `${base}:wakeup`,
  };
}

export type ModelKeys = ReturnType<typeof modelKeys>;
