/** Checks the invariants of a run by what clients saw and by the state of Redis at the end. */
import { forgedStep } from '../clients/forger.ts';
import type { Entry, EntryOf } from '../history.ts';
import { resultTtlMs } from '../system/settings.ts';
import type { AtRest } from './at-rest.ts';
import { findDifferingOutputs } from './outputs.ts';
import { endsOf, endTypes, type EventEntry, type Reader, storiesOf, type Story } from './stories.ts';

export interface Invariant {
  name: string;
  /** Number of checked items. */
  checked: number;
  /** Violations. */
  broken: string[];
  /** True if lost writes in Redis (everysec, failover) may break it, which no process can prevent. */
  isBrokenByLostWrites?: boolean;
}

/** Allowed growth of memory from start to end, without keys that have a TTL. */
const growth = 0.02;

/** Minimum coverage of a run: a run that covers less proves nothing. */
export interface Plan {
  requests: number;
  models: readonly string[];
  /** Fault kinds that are possible on this machine. */
  faults: readonly string[];
}

type Rule = (story: Story) => string[];

/** Rules for each acknowledged request, by name. */
const rules: Record<string, Rule> = {
  'every acknowledged request ends and stays readable until it expires': findLost,
  'one request per Idempotency-Key, one end per request': findDuplicates,
  'requests end as succeeded, canceled by a client or expired by a deadline': findUnexpectedEnds,
  'every output of a succeeded request can be fetched': findUnfetchedOutputs,
  'every reader receives every event once, in order': ({ readers, log, submit }) =>
    readers.flatMap((reader) => findMissedEvents(reader, log, isText(submit.body.model))),
  'all readers receive the same events': ({ readers, log }) => findDifferingEvents(readers, log),
  'no event is written without a lease': findWritesWithoutLease,
  'streamed deltas add up to the final text': findWrongTexts,
  'every webhook is delivered, under one id': findLostWebhooks,
};

export function check(entries: readonly Entry[], atRest: AtRest, plan: Plan): Invariant[] {
  const stories = storiesOf(entries);
  const acknowledged = stories.filter(({ requests }) => requests.size > 0);
  const ofStories = Object.entries(rules).map(([name, rule]) => ({
    name,
    checked: acknowledged.length,
    broken: acknowledged.flatMap((story) => rule(story).map((what) => `${[...story.requests].join(', ')}: ${what}`)),
    isBrokenByLostWrites: true,
  }));
  const forged = entries.filter((entry) => entry.what === 'stale-write');
  const accepted = forged.filter(({ outcome }) => outcome !== 'lost' && outcome !== 'ended');
  const crashes = entries.filter((entry) => entry.what === 'crash');
  const attacks = entries.filter((entry) => entry.what === 'attack');
  const invariants: Invariant[] = [
    ...ofStories,
    {
      name: 'writes with a stale lease token are refused',
      checked: forged.length,
      broken: accepted.map(({ request, outcome }) => `${request}: ${outcome}`),
      isBrokenByLostWrites: true,
    },
    {
      name: 'every request ends, or is answered with 404 or 410',
      checked: acknowledged.length,
      broken: idsOf(acknowledged.filter((story) => endsOf(story).length + story.gone.length === 0)),
    },
    {
      name: 'every completed stream has the terminal event',
      checked: acknowledged.length,
      broken: idsOf(acknowledged.filter(({ readers }) => readers.some(isDoneWithoutEnd))),
    },
    { name: 'the same body and seed produce the same bytes', ...findDifferingOutputs(acknowledged) },
    {
      name: 'every call is answered, every submit accepted',
      checked: stories.length,
      broken: stories.flatMap(({ gaveUp, refusals }) => [
        ...gaveUp.map(({ last }) => last),
        ...refusals.map(({ status }) => `a submit: ${status}`),
      ]),
      isBrokenByLostWrites: true,
    },
    {
      name: 'hostile input is refused',
      checked: attacks.length,
      broken: attacks.filter(({ status }) => !isRefusal(status)).map(({ name, status }) => `${name}: ${status}`),
    },
    { name: 'no process exits unexpectedly', checked: atRest.workers.length, broken: crashes.map(nameOf) },
    ...checkRest(atRest),
    ...checkPlan(entries, acknowledged, plan),
  ];
  // An invariant without checked items counts as broken.
  for (const { checked, broken } of invariants)
    if (checked === 0 && broken.length === 0) broken.push('nothing to check');
  return invariants;
}

/** True for a client error or 503 (unavailable or overloaded). */
function isRefusal(status: number): boolean {
  return (status >= 400 && status < 500) || status === 503;
}

function idsOf(stories: readonly Story[]): string[] {
  return stories.map(({ requests }) => [...requests].join());
}

function isDoneWithoutEnd({ events, isDone }: Reader): boolean {
  return isDone && !endTypes.has(events.at(-1)?.type ?? '');
}

function nameOf({ process, how }: EntryOf<'crash'>): string {
  return `${process}: ${how}`;
}

/** Checks that the run made enough requests and injected all planned faults. */
function checkPlan(entries: readonly Entry[], acknowledged: readonly Story[], plan: Plan): Invariant[] {
  const succeeded = acknowledged.filter((story) => endsOf(story).some(({ state }) => state === 'succeeded'));
  const models = new Set(succeeded.map(({ submit }) => submit.body.model));
  const took = new Set(entries.flatMap((entry) => (entry.what === 'fault' && !isImpossible(entry) ? entry.fault : [])));
  return [
    {
      name: 'the run made enough requests',
      checked: acknowledged.length,
      broken: [
        ...(acknowledged.length < plan.requests ? [`${acknowledged.length}, expected at least ${plan.requests}`] : []),
        ...plan.models.filter((model) => !models.has(model)).map((model) => `no request of ${model} succeeded`),
      ],
    },
    {
      name: 'every planned fault took place',
      checked: plan.faults.length,
      broken: plan.faults.filter((kind) => !took.has(kind)).map((kind) => `${kind} never took place`),
    },
  ];
}

/** True for a fault that could not be injected, for example because Redis was unavailable. */
export function isImpossible({ target }: EntryOf<'fault'>): boolean {
  return target.startsWith('not possible');
}

function isText(model: string): boolean {
  return model !== 'emoji-sd';
}

function findLost(story: Story): string[] {
  const firstEndMs = Math.min(...endsOf(story).map(({ atMs }) => atMs));
  const lost = story.gone.filter(({ status, atMs }) => status === 404 || atMs < firstEndMs + resultTtlMs);
  return [
    ...(firstEndMs === Infinity ? ['no client saw its end'] : []),
    ...lost.map(({ status }) => `${status} before it expired`),
  ];
}

function findDuplicates(story: Story): string[] {
  const states = new Set(endsOf(story).map(({ state }) => state));
  const events = story.log.filter(({ type }) => endTypes.has(type)).length;
  return [
    ...(story.requests.size > 1 ? ['two requests for one Idempotency-Key'] : []),
    ...(states.size > 1 ? [`ends: ${[...states].join(', ')}`] : []),
    ...(events > 1 ? [`${events} terminal events`] : []),
  ];
}

function findUnexpectedEnds(story: Story): string[] {
  const { submit, cancels } = story;
  const expected = new Set(['succeeded']);
  if (submit.isToExpire) expected.add('expired');
  if (cancels.length > 0) expected.add('canceled');
  return [...new Set(endsOf(story).map(({ state }) => state))].filter((state) => !expected.has(state));
}

/** Returns outputs that no client fetched, unless a client came after the request had expired. */
function findUnfetchedOutputs(story: Story): string[] {
  const { submit, outputs, gone } = story;
  if (gone.length > 0 || !endsOf(story).some(({ state }) => state === 'succeeded')) return [];
  const seen = new Set(outputs.map(({ index }) => index));
  const made = Array.from({ length: Number(submit.body['n'] ?? 1) }, (_value, index) => index);
  return made.filter((index) => !seen.has(index)).map((index) => `no client fetched output ${index}`);
}

/** Event types that the snapshot of a text replaces; later readers do not receive them. */
const replaceable = new Set(['progress', 'delta', 'snapshot', 'reset']);

function findMissedEvents({ after, events }: Reader, log: readonly EventEntry[], mayHaveSnapshot: boolean): string[] {
  const missed: string[] = [];
  const types = new Map(log.map(({ event, type }) => [event, type]));
  let last = after;
  for (const [at, { event }] of events.entries()) {
    if (event <= last) missed.push(`event ${event} after ${last}`);
    const isReplaced = mayHaveSnapshot && events.slice(at).some(({ type }) => type === 'snapshot');
    for (let between = last + 1; between < event; between++)
      if (!isReplaced || !replaceable.has(types.get(between) ?? 'delta')) missed.push(`no event ${between}`);
    last = event;
  }
  return missed;
}

function findDifferingEvents(readers: readonly Reader[], log: readonly EventEntry[]): string[] {
  const first = new Map(log.map((event) => [event.event, event]));
  const others = readers.flatMap(({ events }) => events);
  return others
    .filter(({ event, type, digest }) => {
      const known = first.get(event)!;
      // A reader that has received earlier deltas gets a snapshot with only the rest of the text.
      return type !== known.type || (type !== 'snapshot' && digest !== known.digest);
    })
    .map(({ event, type }) => `event ${event} (${type})`);
}

/** Walks the log: no work while queued, increasing steps within a delivery, and nothing after the end. */
function findWritesWithoutLease({ log }: Story): string[] {
  const broken: string[] = [];
  let state: 'none' | 'queued' | 'running' | 'ended' = 'none';
  let steps = new Map<number, number>();
  for (const { event, type, facts } of log) {
    const report = (what: string): void => void broken.push(`event ${event} (${type}) ${what}`);
    if (state === 'ended') report('after the end');
    else if (endTypes.has(type)) state = 'ended';
    else if (type === 'queued') {
      if (state === 'queued') report('while already queued');
      state = 'queued';
    } else if (type === 'started') {
      if (state !== 'queued') report('while not queued');
      state = 'running';
      steps = new Map();
    } else if (state !== 'running') report('while not running');
    else if (facts.step !== undefined) {
      const { index = 0, step } = facts;
      if (step === forgedStep || step <= (steps.get(index) ?? 0)) report(`has step ${step} after ${steps.get(index)}`);
      steps.set(index, step);
    }
  }
  return broken;
}

/** Compares the text that each reader assembled from deltas with the final text. */
function findWrongTexts({ readers, outputs, submit }: Story): string[] {
  if (!isText(submit.body.model)) return [];
  const texts = new Set(outputs.flatMap(({ text }) => text ?? []));
  const broken = texts.size > 1 ? [`${texts.size} different texts`] : [];
  const [text] = texts;
  if (text === undefined) return broken;
  for (const { events, isDone } of readers) {
    let grown = '';
    for (const { event, type, facts } of events) {
      const { offset = 0, text: delta = '' } = facts;
      if (type === 'delta' && offset !== grown.length)
        broken.push(`event ${event}: offset ${offset}, not ${grown.length}`);
      if (type === 'delta' || type === 'snapshot' || type === 'reset') grown = grown.slice(0, offset) + delta;
    }
    if (isDone && grown !== text) broken.push(`deltas: ${JSON.stringify(grown)}, text: ${JSON.stringify(text)}`);
  }
  return broken;
}

function findLostWebhooks({ submit, webhooks, log }: Story): string[] {
  if (!submit.hasWebhook) return [];
  const arrived = webhooks.filter(({ answer }) => answer < 300);
  const idsOf = (type: string): number =>
    new Set(arrived.filter((each) => each.type === `request.${type}`).map(({ id }) => id)).size;
  const wrong = (type: string, expected: number): string[] =>
    idsOf(type) === expected ? [] : [`${idsOf(type)} webhooks of ${type}, expected ${expected}`];
  const end = log.find(({ type }) => endTypes.has(type));
  // No client read the events; the end is known from a poll.
  if (end === undefined) {
    const ends = [...endTypes].reduce((sum, type) => sum + idsOf(type), 0);
    return ends === 1 ? [] : [`${ends} webhooks of its end, expected 1`];
  }
  return [...wrong(end.type, 1), ...wrong('started', log.filter(({ type }) => type === 'started').length)];
}

function checkRest({ leases, workers, keysWithoutTtl, pending, bytes, keys, files, invalidLogs }: AtRest): Invariant[] {
  const many = workers.filter(({ lists }) => lists.length !== 1);
  const isTooMuch = bytes.end > bytes.start * (1 + growth);
  return [
    { name: 'no lease remains', checked: workers.length, broken: [...leases] },
    {
      name: 'every worker is in exactly one list',
      checked: workers.length,
      broken: many.map(({ worker, lists }) => `${worker}: ${lists.join(', ') || 'none'}`),
    },
    { name: 'no request or webhook is pending', checked: 1, broken: [...pending] },
    { name: 'every event log in Redis ends with its only terminal event', checked: 1, broken: [...invalidLogs] },
    { name: 'every key is deleted or has a TTL', checked: keys, broken: [...keysWithoutTtl] },
    { name: 'no orphaned file remains', checked: 1, broken: [...files] },
    {
      name: 'memory grows by at most 2 %',
      checked: 1,
      broken: isTooMuch ? [`${bytes.end} bytes, ${bytes.start} at the start: ${bytes.changes.join(', ')}`] : [],
    },
  ];
}
