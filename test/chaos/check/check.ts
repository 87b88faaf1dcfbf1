/** What must hold of a run, whatever went wrong in it: by what clients saw and what stands in Redis at the end. */
import { forgedStep } from '../clients/forger.ts';
import type { Entry, EntryOf } from '../history.ts';
import { keptMs } from '../system/settings.ts';
import type { AtRest } from './at-rest.ts';
import { outputsThatDiffer } from './outputs.ts';
import { endsOf, endTypes, type EventEntry, type Reader, storiesOf, type Story } from './stories.ts';

export interface Invariant {
  name: string;
  /** How many there were to be checked. */
  checked: number;
  /** Where it does not hold. */
  broken: string[];
  /** What a Redis that loses writes breaks, and no process of ours could keep. */
  isForRedis?: boolean;
}

/** Memory may be so much more than at the start when all that has a time to live is gone. */
const growth = 0.02;

/** What a run was meant to be: one that was less shows nothing. */
export interface Plan {
  requests: number;
  models: readonly string[];
  /** Kinds of faults that this machine can have. */
  faults: readonly string[];
}

type Rule = (story: Story) => string[];

/** Of each acknowledged request. */
const rules: Record<string, Rule> = {
  'acknowledged requests end, and are there until their time is over': isKept,
  'one request for a key, one end for a request': endsOnce,
  'a request ends as it was asked to': endsAsAsked,
  'all that a request made is fetched': outputsUnseen,
  'every reader has every event once, in order': ({ readers, log, submit }) =>
    readers.flatMap((reader) => eventsMissed(reader, log, isText(submit.body.model))),
  'readers see the same events': ({ readers, log }) => eventsThatDiffer(readers, log),
  'nothing is written by who has no lease': writtenWithoutLease,
  'a text that grew is the text': grownOtherwise,
  'every webhook arrives, under one id': webhooksLost,
};

export function check(entries: readonly Entry[], atRest: AtRest, plan: Plan): Invariant[] {
  const stories = storiesOf(entries);
  const acknowledged = stories.filter(({ requests }) => requests.size > 0);
  const ofStories = Object.entries(rules).map(([name, rule]) => ({
    name,
    checked: acknowledged.length,
    broken: acknowledged.flatMap((story) => rule(story).map((what) => `${[...story.requests].join(', ')}: ${what}`)),
    isForRedis: true,
  }));
  const forged = entries.filter((entry) => entry.what === 'stale-write');
  const accepted = forged.filter(({ outcome }) => outcome !== 'lost' && outcome !== 'ended');
  const crashes = entries.filter((entry) => entry.what === 'crash');
  const invariants: Invariant[] = [
    ...ofStories,
    {
      name: 'a write under a token of an earlier delivery is refused',
      checked: forged.length,
      broken: accepted.map(({ request, outcome }) => `${request}: ${outcome}`),
      isForRedis: true,
    },
    {
      name: 'a request ends, or is said to be gone',
      checked: acknowledged.length,
      broken: idsOf(acknowledged.filter((story) => endsOf(story).length + story.gone.length === 0)),
    },
    {
      name: 'a stream that is over has told the end',
      checked: acknowledged.length,
      broken: idsOf(acknowledged.filter(({ readers }) => readers.some(isDoneWithoutEnd))),
    },
    { name: 'the same body and seed bring the same bytes', ...outputsThatDiffer(acknowledged) },
    {
      name: 'every call is answered',
      checked: stories.length,
      broken: stories.flatMap(({ gaveUp, refusals }) => [
        ...gaveUp.map(({ last }) => last),
        ...refusals.map(({ status }) => `a submit: ${status}`),
      ]),
      isForRedis: true,
    },
    { name: 'no process ends by itself', checked: atRest.workers.length, broken: crashes.map(nameOf) },
    ...ofRest(atRest),
    ...ofPlan(entries, acknowledged, plan),
  ];
  // What was never looked at does not hold.
  for (const { checked, broken } of invariants)
    if (checked === 0 && broken.length === 0) broken.push('there was nothing to look at');
  return invariants;
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

/** Whether there was enough to say anything at all. */
function ofPlan(entries: readonly Entry[], acknowledged: readonly Story[], plan: Plan): Invariant[] {
  const succeeded = acknowledged.filter((story) => endsOf(story).some(({ state }) => state === 'succeeded'));
  const models = new Set(succeeded.map(({ submit }) => submit.body.model));
  const took = new Set(entries.flatMap((entry) => (entry.what === 'fault' && !isImpossible(entry) ? entry.fault : [])));
  return [
    {
      name: 'enough was asked for',
      checked: acknowledged.length,
      broken: [
        ...(acknowledged.length < plan.requests ? [`${acknowledged.length}, expected at least ${plan.requests}`] : []),
        ...plan.models.filter((model) => !models.has(model)).map((model) => `nothing of ${model} succeeded`),
      ],
    },
    {
      name: 'all went wrong that was to',
      checked: plan.faults.length,
      broken: plan.faults.filter((kind) => !took.has(kind)).map((kind) => `${kind} never took place`),
    },
  ];
}

/** Redis was away, for one. */
export function isImpossible({ target }: EntryOf<'fault'>): boolean {
  return target.startsWith('not possible');
}

function isText(model: string): boolean {
  return model !== 'emoji-sd';
}

function isKept(story: Story): string[] {
  const firstEndMs = Math.min(...endsOf(story).map(({ atMs }) => atMs));
  const lost = story.gone.filter(({ status, atMs }) => status === 404 || atMs < firstEndMs + keptMs);
  return [
    ...(firstEndMs === Infinity ? ['nobody saw its end'] : []),
    ...lost.map(({ status }) => `${status} before its time was over`),
  ];
}

function endsOnce(story: Story): string[] {
  const states = new Set(endsOf(story).map(({ state }) => state));
  const events = story.log.filter(({ type }) => endTypes.has(type)).length;
  return [
    ...(story.requests.size > 1 ? ['two requests for one key'] : []),
    ...(states.size > 1 ? [`ends: ${[...states].join(', ')}`] : []),
    ...(events > 1 ? [`${events} events that end it`] : []),
  ];
}

function endsAsAsked(story: Story): string[] {
  const { submit, cancels } = story;
  const asked = new Set(['succeeded']);
  if (submit.isToExpire) asked.add('expired');
  if (cancels.length > 0) asked.add('canceled');
  return [...new Set(endsOf(story).map(({ state }) => state))].filter((state) => !asked.has(state));
}

/** By a client that came in time: who came later is none of this. */
function outputsUnseen(story: Story): string[] {
  const { submit, outputs, gone } = story;
  if (gone.length > 0 || !endsOf(story).some(({ state }) => state === 'succeeded')) return [];
  const seen = new Set(outputs.map(({ index }) => index));
  const made = Array.from({ length: Number(submit.body['n'] ?? 1) }, (_value, index) => index);
  return made.filter((index) => !seen.has(index)).map((index) => `nobody saw output ${index}`);
}

/** Those that a text's snapshot takes the place of, so that later readers do not get them. */
const replaceable = new Set(['progress', 'delta', 'snapshot', 'reset']);

function eventsMissed({ after, events }: Reader, log: readonly EventEntry[], mayBeShort: boolean): string[] {
  const missed: string[] = [];
  const types = new Map(log.map(({ event, type }) => [event, type]));
  let last = after;
  for (const [at, { event }] of events.entries()) {
    if (event <= last) missed.push(`event ${event} after ${last}`);
    const isReplaced = mayBeShort && events.slice(at).some(({ type }) => type === 'snapshot');
    for (let between = last + 1; between < event; between++)
      if (!isReplaced || !replaceable.has(types.get(between) ?? 'delta')) missed.push(`no event ${between}`);
    last = event;
  }
  return missed;
}

function eventsThatDiffer(readers: readonly Reader[], log: readonly EventEntry[]): string[] {
  const first = new Map(log.map((event) => [event.event, event]));
  const others = readers.flatMap(({ events }) => events);
  return others
    .filter(({ event, type, digest }) => {
      const known = first.get(event)!;
      // Who was there when a text's snapshot was written knows most of it already, and gets the rest.
      return type !== known.type || (type !== 'snapshot' && digest !== known.digest);
    })
    .map(({ event, type }) => `event ${event} (${type})`);
}

/** Along the log: what waits is worked on by nobody, a delivery counts its steps up, and nothing follows the end. */
function writtenWithoutLease({ log }: Story): string[] {
  const broken: string[] = [];
  let state: 'none' | 'queued' | 'running' | 'ended' = 'none';
  let steps = new Map<number, number>();
  for (const { event, type, facts } of log) {
    const say = (what: string): void => void broken.push(`event ${event} (${type}) ${what}`);
    if (state === 'ended') say('after the end');
    else if (endTypes.has(type)) state = 'ended';
    else if (type === 'queued') {
      if (state === 'queued') say('of what waits');
      state = 'queued';
    } else if (type === 'started') {
      if (state !== 'queued') say('of what does not wait');
      state = 'running';
      steps = new Map();
    } else if (state !== 'running') say('of what does not run');
    else if (facts.step !== undefined) {
      const { index = 0, step } = facts;
      if (step === forgedStep || step <= (steps.get(index) ?? 0)) say(`of step ${step} after ${steps.get(index)}`);
      steps.set(index, step);
    }
  }
  return broken;
}

/** By each reader that saw all of it. */
function grownOtherwise({ readers, outputs, submit }: Story): string[] {
  if (!isText(submit.body.model)) return [];
  const texts = new Set(outputs.flatMap(({ text }) => text ?? []));
  const broken = texts.size > 1 ? [`${texts.size} texts`] : [];
  const [text] = texts;
  if (text === undefined) return broken;
  for (const { events, isDone } of readers) {
    let grown = '';
    for (const { event, type, facts } of events) {
      const { offset = 0, text: piece = '' } = facts;
      if (type === 'delta' && offset !== grown.length) broken.push(`event ${event} is at ${offset} of ${grown.length}`);
      if (type === 'delta' || type === 'snapshot' || type === 'reset') grown = grown.slice(0, offset) + piece;
    }
    if (isDone && grown !== text) broken.push(`it grew to ${JSON.stringify(grown)}, and is ${JSON.stringify(text)}`);
  }
  return broken;
}

function webhooksLost({ submit, webhooks, log }: Story): string[] {
  if (!submit.hasWebhook) return [];
  const arrived = webhooks.filter(({ answer }) => answer < 300);
  const idsOf = (type: string): number =>
    new Set(arrived.filter((each) => each.type === `request.${type}`).map(({ id }) => id)).size;
  const wrong = (type: string, expected: number): string[] =>
    idsOf(type) === expected ? [] : [`${idsOf(type)} webhooks of ${type}, expected ${expected}`];
  const end = log.find(({ type }) => endTypes.has(type));
  // Nobody read its events: that it ended was polled.
  if (end === undefined) {
    const ends = [...endTypes].reduce((sum, type) => sum + idsOf(type), 0);
    return ends === 1 ? [] : [`${ends} webhooks of its end`];
  }
  return [...wrong(end.type, 1), ...wrong('started', log.filter(({ type }) => type === 'started').length)];
}

function ofRest({ leases, workers, withoutEnd, unsettled, bytes, keys, files, endless }: AtRest): Invariant[] {
  const many = workers.filter(({ lists }) => lists.length !== 1);
  const isTooMuch = bytes.end > bytes.start * (1 + growth);
  return [
    { name: 'no lease is left', checked: workers.length, broken: [...leases] },
    {
      name: 'every worker is in one list',
      checked: workers.length,
      broken: many.map(({ worker, lists }) => `${worker}: ${lists.join(', ') || 'none'}`),
    },
    { name: 'nothing waits, runs or is yet to be told', checked: 1, broken: [...unsettled] },
    { name: 'what Redis has of a request has one end', checked: 1, broken: [...endless] },
    { name: 'every key is gone or has an end', checked: keys, broken: [...withoutEnd] },
    { name: 'no file is left that nobody can ask for', checked: 1, broken: [...files] },
    {
      name: 'memory is no more than at the start (2 %)',
      checked: 1,
      broken: isTooMuch ? [`${bytes.end} bytes, ${bytes.start} at the start: ${bytes.changes.join(', ')}`] : [],
    },
  ];
}
