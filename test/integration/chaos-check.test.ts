/** The checker of `npm run chaos`: a good history is good, and each way of being bad is red by its own name, and by no other. */
import { expect, it } from 'vitest';
import type { AtRest } from '../chaos/check/at-rest.ts';
import { check, type Plan } from '../chaos/check/check.ts';
import { crashesIn } from '../chaos/check/crashes.ts';
import type { Entry, EventFacts, Seen } from '../chaos/history.ts';

const picture = { model: 'emoji-sd', prompt: 'a cat', seed: 1 };
const text = { model: 'emoji-writer', prompt: 'a cat', max_tokens: 2 };

const goodRest: AtRest = {
  leases: [],
  workers: [{ worker: 'emoji-sd painter-1.1', lists: ['idle'] }],
  withoutEnd: [],
  keys: 20,
  unsettled: [],
  endless: [],
  bytes: { start: 1_000_000, end: 1_010_000, changes: [] },
  files: [],
};
const plan: Plan = { requests: 3, models: ['emoji-sd', 'emoji-writer'], faults: ['kill', 'redis'] };
/** For a history of one request that is about something else. */
const little: Plan = { requests: 1, models: [], faults: ['kill'] };
const around: Seen[] = [
  { what: 'stale-write', request: 'p1', outcome: 'lost' },
  { what: 'fault', fault: 'kill', target: 'api-1' },
];

/** `[type, facts]` of one event after the other, from the first, and the end of the stream. */
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

/** A picture whose worker was lost after its second step, for which a webhook is told of starts and the end. */
const ofPicture = [
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
  // It came before the answer to the submit.
  webhooks[0]!,
  { what: 'submit', key: 'k1', body: picture, same: 'p', isToExpire: false, hasWebhook: true },
  { what: 'accepted', key: 'k1', request: 'p1' },
  // Sent twice.
  { what: 'accepted', key: 'k1', request: 'p1' },
  ...reads(1, 'p1', ofPicture),
  ...reads(2, 'p1', ofPicture),
  { what: 'webhook', request: 'p1', id: 'msg_2', type: 'request.succeeded', answer: 503 },
  ...webhooks.slice(1),
  { what: 'poll', request: 'p1', state: 'succeeded' },
  { what: 'output', request: 'p1', index: 0, digest: 'aa' },
  { what: 'submit', key: 'k2', body: text, same: 't', isToExpire: false, hasWebhook: false },
  { what: 'accepted', key: 'k2', request: 't1' },
  ...reads(3, 't1', ofText),
  { what: 'output', request: 't1', index: 0, digest: 'bb', text: 'a cake' },
  { what: 'submit', key: 'k3', body: picture, same: 'p', isToExpire: false, hasWebhook: false },
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

/** Of the good history, without what the predicate is true of. */
function without(isLeftOut: (seen: Seen) => boolean): Seen[] {
  return goodHistory.filter((seen) => !isLeftOut(seen));
}

const isEvent =
  (reader: number, ...numbers: number[]) =>
  (seen: Seen) =>
    seen.what === 'event' && seen.reader === reader && numbers.includes(seen.event);

/** The good history, with the event of that number changed wherever it was read. */
function changed(readers: readonly number[], event: number, change: Partial<Extract<Seen, { what: 'event' }>>): Seen[] {
  return goodHistory.map((seen) =>
    seen.what === 'event' && readers.includes(seen.reader) && seen.event === event ? { ...seen, ...change } : seen,
  );
}

it('a good history is good', () => {
  expect(brokenIn(goodHistory)).toEqual([]);
});

const kept = 'acknowledged requests end, and are there until their time is over';
const once = 'one request for a key, one end for a request';
const asAsked = 'a request ends as it was asked to';
const everyEvent = 'every reader has every event once, in order';
const sameEvents = 'readers see the same events';
const leased = 'nothing is written by who has no lease';
const grown = 'a text that grew is the text';
const told = 'every webhook arrives, under one id';
const fenced = 'a write under a token of an earlier delivery is refused';
const saidGone = 'a request ends, or is said to be gone';
const toldEnd = 'a stream that is over has told the end';
const sameBytes = 'the same body and seed bring the same bytes';
const answered = 'every call is answered';
const fetched = 'all that a request made is fetched';
const ofItself = 'no process ends by itself';
const enough = 'enough was asked for';
const went = 'all went wrong that was to';
const stale = goodHistory.findIndex(({ what }) => what === 'stale-write');

it.each<[string, Seen[], string[]]>([
  ['nobody saw an end', without((seen) => seen.what === 'poll' && seen.state === 'canceled'), [kept, saidGone]],
  ['gone before its time', [...goodHistory, { what: 'gone', request: 'p2', status: 410 }], [kept]],
  ['never heard of', [...goodHistory, { what: 'gone', request: 'p2', status: 404 }], [kept]],
  ['two requests for a key', [...goodHistory, { what: 'accepted', key: 'k3', request: 'p3' }], [once]],
  ['two ends', [...goodHistory, { what: 'poll', request: 'p1', state: 'canceled' }], [once, asAsked]],
  [
    'failed',
    goodHistory.map((seen) => (seen.what === 'poll' && seen.request === 'p2' ? { ...seen, state: 'failed' } : seen)),
    [asAsked],
  ],
  ['canceled by nobody', without(({ what }) => what === 'cancel'), [asAsked]],
  ['an event is missing', without(isEvent(2, 3)), [everyEvent]],
  ['the last event is missing', without(isEvent(2, 9)), [toldEnd]],
  ['an event comes again', goodHistory.flatMap((seen) => (isEvent(2, 3)(seen) ? [seen, seen] : [seen])), [everyEvent]],
  ['readers differ', changed([2], 3, { digest: 'another' }), [sameEvents]],
  ['a step of the delivery before', changed([1, 2], 7, { facts: { writtenAtMs: 0, index: 0, step: 0 } }), [leased]],
  ['a forged step', changed([1, 2], 7, { facts: { writtenAtMs: 0, index: 0, step: 1_000_000 } }), [leased]],
  ['work on what waits', changed([1, 2], 2, { type: 'progress' }), [leased, told]],
  ['something after the end', changed([3], 5, { type: 'succeeded' }), [once, leased]],
  [
    'a piece of text at the wrong place',
    changed([3], 4, { facts: { writtenAtMs: 0, offset: 3, text: 'cake' } }),
    [grown],
  ],
  ['another text than it grew to', changed([3], 4, { facts: { writtenAtMs: 0, offset: 2, text: 'caKe' } }), [grown]],
  ['a webhook is lost', without((seen) => seen.what === 'webhook' && seen.id === 'msg_0'), [told]],
  [
    'a webhook was only refused',
    without((seen) => seen.what === 'webhook' && seen.id === 'msg_2' && seen.answer === 204),
    [told],
  ],
  ['a webhook came under two ids', [...goodHistory, { ...webhooks[2]!, id: 'msg_3' } as Seen], [told]],
  [
    'a stale write was taken',
    goodHistory.with(stale, { what: 'stale-write', request: 'p1', outcome: 'written' }),
    [fenced],
  ],
  ['nobody saw a picture', without((seen) => seen.what === 'output' && seen.request === 'p1'), [fetched]],
  ['nobody saw a text', without((seen) => seen.what === 'output' && seen.request === 't1'), [fetched]],
  [
    'one picture of two was seen',
    goodHistory.map((seen) =>
      seen.what === 'submit' && seen.key === 'k1' ? { ...seen, body: { ...picture, n: 2 } } : seen,
    ),
    [fetched],
  ],
  ['other bytes', [...goodHistory, { what: 'output', request: 'p1', index: 0, digest: 'cc' }], [sameBytes]],
  ['no answer', [...goodHistory, { what: 'gave-up', key: 'k3', last: '503' }], [answered]],
  ['a submit was refused', [...goodHistory, { what: 'refused', key: 'k3', status: 409 }], [answered]],
  ['a process crashed', [...goodHistory, { what: 'crash', process: 'api-1', how: 'exit 1' }], [ofItself]],
  [
    'a fault that was planned never took place',
    without((seen) => seen.what === 'fault' && seen.fault === 'redis'),
    [went],
  ],
  [
    'a fault could not be had when its turn was',
    goodHistory.map((seen) => (seen.what === 'fault' ? { ...seen, target: 'not possible: Redis is away' } : seen)),
    [went],
  ],
  ['too few came', without((seen) => 'key' in seen && seen.key === 'k3'), [enough]],
])('red: %s', (_what, history, names) => {
  expect(brokenIn(history)).toEqual(names);
});

it('red: an empty history', () => {
  const names = check([], goodRest, plan).map(({ name }) => name);
  const ofRest = names.slice(names.indexOf(ofItself), names.indexOf(enough));
  expect(brokenIn([])).toEqual(names.filter((name) => !ofRest.includes(name)));
});

it('red: a model of which nothing succeeded', () => {
  expect(brokenIn(goodHistory, goodRest, { ...plan, models: [...plan.models, 'upstream'] })).toEqual([enough]);
});

function line(fields: object): string {
  return JSON.stringify({ level: 'error', app: 'worker', pid: 7, ...fields });
}

it('a crash is what a process says of itself, and not what a fault did', () => {
  const lost = (reason: string): string => line({ msg: 'engine lost', reason });
  const found = crashesIn(
    [
      line({ level: 'fatal', msg: 'uncaughtException', err: { message: 'no' } }),
      lost('the engine exited with code 1'),
      lost('the engine was killed by SIGSEGV'),
      lost('the engine was killed by SIGKILL'),
      // While it loaded its model for the first time.
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
  ['a lease', { leases: ['chaos:v2:{emoji-sd}:leases:w1'] }, 'no lease is left'],
  ['a worker in two lists', { workers: [{ worker: 'w1', lists: ['idle', 'busy'] }] }, 'every worker is in one list'],
  ['a worker in none', { workers: [{ worker: 'w1', lists: [] }] }, 'every worker is in one list'],
  ['something waits', { unsettled: ['emoji-sd: 1 in waiting'] }, 'nothing waits, runs or is yet to be told'],
  ['two ends', { endless: ['p1: succeeded, failed'] }, 'what Redis has of a request has one end'],
  ['a file', { files: ['/tmp/bytes/chaos/p1/outputs/t.0'] }, 'no file is left that nobody can ask for'],
  ['a key stays', { withoutEnd: ['chaos:v2:{emoji-sd}:request:p1'] }, 'every key is gone or has an end'],
  [
    'memory grew',
    { bytes: { start: 1_000_000, end: 1_020_001, changes: [] } },
    'memory is no more than at the start (2 %)',
  ],
])('red: %s is left', (_what, atRest, name) => {
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

it('red: a text of another server is of two runs', () => {
  expect(brokenIn(ofAnotherServer('ab:0 ab:1 '), goodRest, little)).toEqual([]);
  for (const content of ['ab:0 cd:1 ', 'ab:0 ', 'ab:0 ab:1 ab:2 '])
    expect(brokenIn(ofAnotherServer(content), goodRest, little)).toEqual([sameBytes]);
});

it('a snapshot takes the place of pieces of text, and of nothing else', () => {
  const snapshot = ['snapshot', { index: 0, offset: 0, text: 'a cake' }] as const;
  const pieces = [...ofText.slice(0, 4), snapshot, ...ofText.slice(4)];
  const readWithout = (...numbers: number[]): string[] =>
    brokenIn(
      [
        { what: 'submit', key: 'k', body: text, same: 't', isToExpire: false, hasWebhook: false },
        { what: 'accepted', key: 'k', request: 't' },
        ...reads(1, 't', pieces),
        ...reads(2, 't', pieces).filter((seen) => !isEvent(2, ...numbers)(seen)),
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
