/** The checker of `npm run chaos`: it accepts a correct history, and reports each fault by exactly its own check. */
import { expect, it } from 'vitest';
import type { AtRest } from '../chaos/check/at-rest.ts';
import { check, type Plan } from '../chaos/check/check.ts';
import { crashesIn } from '../chaos/check/crashes.ts';
import type { Entry, EventFacts, Seen } from '../chaos/history.ts';

const image = { model: 'emoji-sd', prompt: 'a cat', seed: 1 };
const text = { model: 'emoji-writer', prompt: 'a cat', max_tokens: 2 };

const goodRest: AtRest = {
  leases: [],
  workers: [{ worker: 'emoji-sd painter-1.1', lists: ['idle'] }],
  keysWithoutTtl: [],
  keys: 20,
  pending: [],
  invalidLogs: [],
  bytes: { start: 1_000_000, end: 1_010_000, changes: [] },
  files: [],
};
const plan: Plan = { requests: 3, models: ['emoji-sd', 'emoji-writer'], faults: ['kill', 'redis'] };
/** The plan for a history of one request. */
const little: Plan = { requests: 1, models: [], faults: ['kill'] };
const around: Seen[] = [
  { what: 'stale-write', request: 'p1', outcome: 'lost' },
  { what: 'attack', name: 'deep', status: 400 },
  { what: 'fault', fault: 'kill', target: 'api-1' },
];

/** Returns the events that a reader received, as `[type, facts]` from the first on, and the end of the stream. */
function reads(reader: number, request: string, events: readonly (readonly [string, Partial<EventFacts>?])[]): Seen[] {
  return [
    { what: 'reader', reader, request, after: 0 },
    ...events.map(([type, facts = {}], at): Seen => {
      const digest = `${request} ${at + 1} ${type}`;
      return { what: 'event', reader, event: at + 1, type, digest, facts: { writtenAtMs: 0, ...facts } };
    }),
    { what: 'done', reader },
  ];
}

/** An image request whose worker was lost after its second step, with a webhook for starts and the end. */
const ofImage = [
  ['queued'],
  ['started'],
  ['progress', { index: 0, step: 1 }],
  ['progress', { index: 0, step: 2 }],
  ['queued'],
  ['started'],
  ['progress', { index: 0, step: 2 }],
  ['image', { index: 0 }],
  ['succeeded'],
] as const;
const ofText = [
  ['queued'],
  ['started'],
  ['delta', { index: 0, offset: 0, text: 'a ' }],
  ['delta', { index: 0, offset: 2, text: 'cake' }],
  ['text', { index: 0 }],
  ['succeeded'],
] as const;

const webhooks = (['started', 'started', 'succeeded'] as const).map((type, at): Seen => {
  return { what: 'webhook', request: 'p1', id: `msg_${at}`, type: `request.${type}`, answer: 204 };
});

const goodHistory: Seen[] = [
  // The webhook arrived before the reply to the submit.
  webhooks[0]!,
  { what: 'submit', key: 'k1', body: image, same: 'p', isToExpire: false, hasWebhook: true },
  { what: 'accepted', key: 'k1', request: 'p1' },
  // The submit was sent twice.
  { what: 'accepted', key: 'k1', request: 'p1' },
  ...reads(1, 'p1', ofImage),
  ...reads(2, 'p1', ofImage),
  { what: 'webhook', request: 'p1', id: 'msg_2', type: 'request.succeeded', answer: 503 },
  ...webhooks.slice(1),
  { what: 'poll', request: 'p1', state: 'succeeded' },
  { what: 'output', request: 'p1', index: 0, digest: 'aa' },
  { what: 'submit', key: 'k2', body: text, same: 't', isToExpire: false, hasWebhook: false },
  { what: 'accepted', key: 'k2', request: 't1' },
  ...reads(3, 't1', ofText),
  { what: 'output', request: 't1', index: 0, digest: 'bb', text: 'a cake' },
  { what: 'submit', key: 'k3', body: image, same: 'p', isToExpire: false, hasWebhook: false },
  { what: 'accepted', key: 'k3', request: 'p2' },
  { what: 'poll', request: 'p2', state: 'running' },
  { what: 'cancel', request: 'p2', status: 202 },
  { what: 'poll', request: 'p2', state: 'canceled' },
  ...around,
  { what: 'fault', fault: 'redis', target: 'SIGKILL' },
];

function brokenIn(history: readonly Seen[], atRest: AtRest = goodRest, planned: Plan = plan): string[] {
  const entries = history.map((seen, at): Entry => ({ ...seen, atMs: at }));
  return check(entries, atRest, planned)
    .filter(({ broken }) => broken.length > 0)
    .map(({ name }) => name);
}

/** Returns the good history without the entries that the predicate matches. */
function without(isLeftOut: (seen: Seen) => boolean): Seen[] {
  return goodHistory.filter((seen) => !isLeftOut(seen));
}

const isEvent =
  (reader: number, ...numbers: number[]) =>
  (seen: Seen) =>
    seen.what === 'event' && seen.reader === reader && numbers.includes(seen.event);

/** Returns the good history with one event changed in each of the named readers. */
function changed(readers: readonly number[], event: number, change: Partial<Extract<Seen, { what: 'event' }>>): Seen[] {
  return goodHistory.map((seen) =>
    seen.what === 'event' && readers.includes(seen.reader) && seen.event === event ? { ...seen, ...change } : seen,
  );
}

it('accepts a correct history', () => {
  expect(brokenIn(goodHistory)).toEqual([]);
});

const retained = 'every acknowledged request ends and stays readable until it expires';
const once = 'one request per Idempotency-Key, one end per request';
const expectedEnd = 'requests end as succeeded, canceled by a client or expired by a deadline';
const everyEvent = 'every reader receives every event once, in order';
const sameEvents = 'all readers receive the same events';
const leased = 'no event is written without a lease';
const grown = 'streamed deltas add up to the final text';
const webhookOnce = 'every webhook is delivered, under one id';
const fenced = 'writes with a stale lease token are refused';
const endedOrGone = 'every request ends, or is answered with 404 or 410';
const streamEnd = 'every completed stream has the terminal event';
const sameBytes = 'the same body and seed produce the same bytes';
const answered = 'every call is answered, every submit accepted';
const fetched = 'every output of a succeeded request can be fetched';
const refused = 'hostile input is refused';
const ofItself = 'no process exits unexpectedly';
const enough = 'the run made enough requests';
const went = 'every planned fault took place';
const stale = goodHistory.findIndex(({ what }) => what === 'stale-write');

it.each<[string, Seen[], string[]]>([
  [
    'no end was observed',
    without((seen) => seen.what === 'poll' && seen.state === 'canceled'),
    [retained, endedOrGone],
  ],
  ['a 410 before the TTL', [...goodHistory, { what: 'gone', request: 'p2', status: 410 }], [retained]],
  ['a 404 of an accepted request', [...goodHistory, { what: 'gone', request: 'p2', status: 404 }], [retained]],
  ['two requests for a key', [...goodHistory, { what: 'accepted', key: 'k3', request: 'p3' }], [once]],
  ['two ends', [...goodHistory, { what: 'poll', request: 'p1', state: 'canceled' }], [once, expectedEnd]],
  [
    'failed',
    goodHistory.map((seen) => (seen.what === 'poll' && seen.request === 'p2' ? { ...seen, state: 'failed' } : seen)),
    [expectedEnd],
  ],
  ['canceled without a cancel call', without(({ what }) => what === 'cancel'), [expectedEnd]],
  ['an event is missing', without(isEvent(2, 3)), [everyEvent]],
  ['the last event is missing', without(isEvent(2, 9)), [streamEnd]],
  ['an event comes again', goodHistory.flatMap((seen) => (isEvent(2, 3)(seen) ? [seen, seen] : [seen])), [everyEvent]],
  ['readers differ', changed([2], 3, { digest: 'another' }), [sameEvents]],
  ['a step of the previous delivery', changed([1, 2], 7, { facts: { writtenAtMs: 0, index: 0, step: 0 } }), [leased]],
  ['a forged step', changed([1, 2], 7, { facts: { writtenAtMs: 0, index: 0, step: 1_000_000 } }), [leased]],
  ['progress of a queued request', changed([1, 2], 2, { type: 'progress' }), [leased, webhookOnce]],
  ['an event after the end', changed([3], 5, { type: 'succeeded' }), [once, leased]],
  ['a delta at the wrong offset', changed([3], 4, { facts: { writtenAtMs: 0, offset: 3, text: 'cake' } }), [grown]],
  [
    'an output that differs from its deltas',
    changed([3], 4, { facts: { writtenAtMs: 0, offset: 2, text: 'caKe' } }),
    [grown],
  ],
  ['a webhook is lost', without((seen) => seen.what === 'webhook' && seen.id === 'msg_0'), [webhookOnce]],
  [
    'a webhook that was never accepted',
    without((seen) => seen.what === 'webhook' && seen.id === 'msg_2' && seen.answer === 204),
    [webhookOnce],
  ],
  ['a webhook came under two ids', [...goodHistory, { ...webhooks[2]!, id: 'msg_3' } as Seen], [webhookOnce]],
  [
    'a stale write was accepted',
    goodHistory.with(stale, { what: 'stale-write', request: 'p1', outcome: 'written' }),
    [fenced],
  ],
  ['an attack was accepted', [...goodHistory, { what: 'attack', name: 'deep', status: 202 }], [refused]],
  ['an attack caused an error', [...goodHistory, { what: 'attack', name: 'deep', status: 500 }], [refused]],
  ['no output of an image was fetched', without((seen) => seen.what === 'output' && seen.request === 'p1'), [fetched]],
  ['no output of a text was fetched', without((seen) => seen.what === 'output' && seen.request === 't1'), [fetched]],
  [
    'one image of two was fetched',
    goodHistory.map((seen) =>
      seen.what === 'submit' && seen.key === 'k1' ? { ...seen, body: { ...image, n: 2 } } : seen,
    ),
    [fetched],
  ],
  [
    'different bytes for the same seed',
    [...goodHistory, { what: 'output', request: 'p1', index: 0, digest: 'cc' }],
    [sameBytes],
  ],
  ['a call without an answer', [...goodHistory, { what: 'gave-up', key: 'k3', last: '503' }], [answered]],
  ['a submit was refused', [...goodHistory, { what: 'refused', key: 'k3', status: 409 }], [answered]],
  ['a process crashed', [...goodHistory, { what: 'crash', process: 'api-1', how: 'exit 1' }], [ofItself]],
  ['a planned fault did not take place', without((seen) => seen.what === 'fault' && seen.fault === 'redis'), [went]],
  [
    'a planned fault was not possible',
    goodHistory.map((seen) => (seen.what === 'fault' ? { ...seen, target: 'not possible: Redis is away' } : seen)),
    [went],
  ],
  ['too few requests', without((seen) => 'key' in seen && seen.key === 'k3'), [enough]],
])('reports: %s', (_what, history, names) => {
  expect(brokenIn(history)).toEqual(names);
});

it('reports an empty history', () => {
  const names = check([], goodRest, plan).map(({ name }) => name);
  const ofRest = names.slice(names.indexOf(ofItself), names.indexOf(enough));
  expect(brokenIn([])).toEqual(names.filter((name) => !ofRest.includes(name)));
});

it('reports a model without a successful request', () => {
  expect(brokenIn(goodHistory, goodRest, { ...plan, models: [...plan.models, 'upstream'] })).toEqual([enough]);
});

function line(fields: object): string {
  return JSON.stringify({ level: 'error', app: 'worker', pid: 7, ...fields });
}

it('counts errors of a process as crashes, and not the effects of injected faults', () => {
  const lost = (reason: string): string => line({ msg: 'engine lost', reason });
  const found = crashesIn(
    [
      line({ level: 'fatal', msg: 'uncaughtException', err: { message: 'no' } }),
      lost('the engine exited with code 1'),
      lost('the engine was killed by SIGSEGV'),
      lost('the engine was killed by SIGKILL'),
      // Killed during its first load.
      line({ level: 'fatal', msg: 'could not start', err: { message: 'the engine was killed by SIGKILL' } }),
      lost('fetch failed'),
      line({ msg: 'could not write' }),
      '(node:7) Warning: what Node says',
    ].join('\n'),
  );
  expect(found.map(({ how }) => how)).toEqual([
    'uncaughtException no',
    'engine lost the engine exited with code 1',
    'engine lost the engine was killed by SIGSEGV',
  ]);
});

it.each<[string, Partial<AtRest>, string]>([
  ['a lease', { leases: ['chaos:v3:{emoji-sd}:leases:w1'] }, 'no lease remains'],
  [
    'a worker in two lists',
    { workers: [{ worker: 'w1', lists: ['idle', 'busy'] }] },
    'every worker is in exactly one list',
  ],
  ['a worker in no list', { workers: [{ worker: 'w1', lists: [] }] }, 'every worker is in exactly one list'],
  ['a queued request', { pending: ['emoji-sd: 1 in waiting'] }, 'no request or webhook is pending'],
  [
    'two ends',
    { invalidLogs: ['p1: succeeded, failed'] },
    'every event log in Redis ends with its only terminal event',
  ],
  ['an orphaned file', { files: ['/tmp/bytes/chaos/p1/outputs/t.0'] }, 'no orphaned file remains'],
  ['a key without TTL', { keysWithoutTtl: ['chaos:v3:{emoji-sd}:request:p1'] }, 'every key is deleted or has a TTL'],
  ['memory grew', { bytes: { start: 1_000_000, end: 1_020_001, changes: [] } }, 'memory grows by at most 2 %'],
])('reports what is left at rest: %s', (_what, atRest, name) => {
  expect(brokenIn(goodHistory, { ...goodRest, ...atRest })).toEqual([name]);
});

function ofAnotherServer(content: string): Seen[] {
  return [
    { what: 'submit', key: 'k', body: { model: 'upstream', max_tokens: 2 }, isToExpire: false, hasWebhook: false },
    { what: 'accepted', key: 'k', request: 'u1' },
    { what: 'poll', request: 'u1', state: 'succeeded' },
    { what: 'output', request: 'u1', index: 0, digest: content, text: content },
    ...around,
  ];
}

it('reports a text of an upstream server that mixes two runs', () => {
  expect(brokenIn(ofAnotherServer('ab:0 ab:1 '), goodRest, little)).toEqual([]);
  for (const content of ['ab:0 cd:1 ', 'ab:0 ', 'ab:0 ab:1 ab:2 '])
    expect(brokenIn(ofAnotherServer(content), goodRest, little)).toEqual([sameBytes]);
});

it('a snapshot may replace text deltas, and no other events', () => {
  const snapshot = ['snapshot', { index: 0, offset: 0, text: 'a cake' }] as const;
  const textEvents = [...ofText.slice(0, 4), snapshot, ...ofText.slice(4)];
  const readWithout = (...numbers: number[]): string[] =>
    brokenIn(
      [
        { what: 'submit', key: 'k', body: text, same: 't', isToExpire: false, hasWebhook: false },
        { what: 'accepted', key: 'k', request: 't' },
        ...reads(1, 't', textEvents),
        ...reads(2, 't', textEvents).filter((seen) => !isEvent(2, ...numbers)(seen)),
        { what: 'output', request: 't', index: 0, digest: 'x', text: 'a cake' },
        ...around,
      ],
      goodRest,
      little,
    );
  expect(readWithout(3, 4)).toEqual([]);
  expect(readWithout(2, 3, 4)).toEqual([everyEvent]);
  expect(readWithout(4, 5)).toEqual([everyEvent, grown]);
});
