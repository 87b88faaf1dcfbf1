import { type OutputInfo, type OutputText, type RequestEvent, textAfter, type TextEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiContext } from '../../context.ts';
import { ApiError } from '../../http/api-error.ts';
import { followStored } from '../../follow/follow-stored.ts';
import { endedWithoutResult } from '../../follow/stored-request-error.ts';
import type { ClientWatch } from '../../follow/watch-client.ts';

/** Something was added to a text, and stays. */
export interface AddedText {
  type: 'added';
  index: number;
  text: string;
  /** Tokens of the text before it. */
  tokenOffset: number;
  /** Of exactly this piece (`TextPieceFacts`); absent where an older worker said nothing of it. */
  facts?: OutputText['facts'] | undefined;
  timestampMs: number;
}

/** What stands in the block that is worked on, after all that was added. */
export interface ShownBlock extends Omit<AddedText, 'type'> {
  type: 'block';
}

/** A text has come to its end. */
export interface FinishedText {
  type: 'finished';
  output: OutputInfo;
  /** All of it; empty where `withText` is false. */
  text: string;
  timestampMs: number;
}

/** A rerun wrote another text: of what was added, only a beginning stays. */
export interface TakenBackText {
  type: 'taken-back';
  index: number;
  /** UTF-16 code units. */
  length: number;
}

export type TextItem = AddedText | ShownBlock | FinishedText | TakenBackText;

interface FollowTextsOptions {
  id: string;
  watch: ClientWatch;
  /** Whether finished texts are wanted as a whole; then their log may have lost text. */
  withText?: boolean;
}

/**
 * The texts of a request in the writing: each piece once, whatever number of workers wrote it, and nothing of a block before
 * the block stays. Throws as `followStored`, and as `createTextReader`.
 */
export function followTexts(
  context: ApiContext,
  { id, watch, withText = false }: FollowTextsOptions,
): AsyncGenerator<TextItem | 'heartbeat', void> {
  const itemsOf = createTextReader(id, { mayLose: withText });
  return followStored(context, id, watch, async function* (event) {
    for (const item of itemsOf(event)) {
      if (item.type !== 'finished' || !withText) yield item;
      else yield { ...item, text: await wholeText(context, id, item.output.index) };
    }
  });
}

async function wholeText({ askStore }: ApiContext, id: string, index: number): Promise<string> {
  const stored = await askStore((store) => readOutput(store, id, index));
  if (stored === undefined) throw endedWithoutResult(id, 'succeeded', undefined);
  return stored.data.toString('utf8');
}

/** What was added to a text by now: UTF-16 code units and tokens. */
interface Added {
  units: number;
  tokens: number;
  text: string;
  /** What stands in the log, while that is less than what was added, or another text. */
  standing?: string | undefined;
}

/**
 * Keeps what was said of each output of a request. Throws 410 where the log has lost text: it holds so many entries, and is
 * made shorter only now and then. With `mayLose` it goes on, and says nothing of the tokens of what follows at once.
 */
export function createTextReader(
  id: string,
  { mayLose = false }: { mayLose?: boolean } = {},
): (event: RequestEvent) => Generator<TextItem, void> {
  const all = new Map<number, Added>();
  const finished = new Set<number>();
  const finish = function* (output: OutputInfo, timestampMs: number): Generator<TextItem, void> {
    if (finished.has(output.index)) return;
    yield* shorten(all, output.index);
    yield { type: 'finished', output, text: '', timestampMs };
    // Who could not take it is given it again.
    finished.add(output.index);
  };
  return function* (event) {
    if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
      yield* readText(all, event, { id, mayLose });
    else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield* finish(event.output, event.timestampMs);
    // All of them: the log may have lost what stood in its beginning.
    else if (event.type === 'succeeded') for (const output of event.outputs) yield* finish(output, event.timestampMs);
  };
}

function textLost(id: string): ApiError {
  return new ApiError(410, 'text_lost', `The beginning of the text of request ${id} is no longer kept.`);
}

function* readText(
  all: Map<number, Added>,
  event: TextEvent,
  { id, mayLose }: { id: string; mayLose: boolean },
): Generator<TextItem, void> {
  const { index, timestampMs } = event;
  const before = all.get(index) ?? { units: 0, tokens: 0, text: '' };
  const isCut = event.type === 'reset' ? event.offset < before.units : isShorterWhole(event, before);
  if (isCut || before.standing !== undefined) return yield* compare(all, event, before);
  if (event.type === 'reset') return;
  const isLost = event.offset > before.units;
  if (isLost && !mayLose) throw textLost(id);
  const { facts } = event;
  if (stays(event)) {
    const piece = newPart(event, before);
    if (piece === undefined) return;
    all.set(index, { ...piece.after, text: before.text.padEnd(event.offset) + piece.text });
    const said = isLost ? undefined : piece.facts;
    yield { type: 'added', index, text: piece.text, tokenOffset: before.tokens, facts: said, timestampMs };
  } else if (event.offset === before.units)
    // A worker that goes on where a lost one stood shows blocks again that are done.
    yield { type: 'block', index, text: event.text, tokenOffset: before.tokens, facts, timestampMs };
}

/** Without facts: of an older worker, that says nothing of them where a log was made shorter. */
function stays(event: Exclude<TextEvent, { type: 'reset' }>): boolean {
  const { type, isWhole, facts } = event;
  return type === 'delta' || isWhole === true || facts === undefined || facts['settled'] !== undefined;
}

/** It took the place of a reset. */
function isShorterWhole({ isWhole, offset, text }: Exclude<TextEvent, { type: 'reset' }>, { units }: Added): boolean {
  return isWhole === true && offset + text.length < units;
}

/** A rerun may write what was said before, and then nobody has to know. */
function* compare(all: Map<number, Added>, event: TextEvent, before: Added): Generator<TextItem, void> {
  if (event.type !== 'reset' && !stays(event)) return;
  const { index, timestampMs } = event;
  const standing = textAfter(before.standing ?? before.text, event);
  const { text, tokens: tokenOffset } = before;
  if (text.startsWith(standing)) {
    all.set(index, { ...before, standing: standing === text ? undefined : standing });
    return;
  }
  const length = sharedLength(text, standing);
  if (length < text.length) yield { type: 'taken-back', index, length };
  const done = (event.type === 'reset' ? undefined : event.done) ?? tokenOffset;
  all.set(index, { units: standing.length, tokens: done, text: standing });
  yield { type: 'added', index, text: standing.slice(length), tokenOffset, timestampMs };
}

/** At its end a text is what stands. */
function* shorten(all: Map<number, Added>, index: number): Generator<TakenBackText, void> {
  const { standing, ...added } = all.get(index) ?? { standing: undefined, units: 0, tokens: 0, text: '' };
  if (standing === undefined) return;
  all.set(index, { ...added, units: standing.length, text: standing });
  yield { type: 'taken-back', index, length: standing.length };
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

/** What of a piece was not there before; undefined if nothing. */
function newPart({ offset, text, done, facts }: OutputText, before: Added) {
  const known = Math.max(0, before.units - offset);
  if (known >= text.length && (done === undefined ? known > 0 : done <= before.tokens)) return undefined;
  const ids = idsOf(facts);
  const tokens = done ?? before.tokens + ids.length;
  const after = { units: Math.max(before.units, offset + text.length), tokens: Math.max(before.tokens, tokens) };
  // Of its tokens, those that pieces before it had.
  const said = Math.max(0, before.tokens - (tokens - ids.length));
  return { text: text.slice(known), facts: known > 0 && done === undefined ? undefined : cutFacts(facts, said), after };
}

function idsOf(facts: OutputText['facts']): string[] {
  return String(facts?.['ids'] ?? '')
    .split(',')
    .slice(0, -1);
}

/** Without what is said of the first tokens. */
function cutFacts(facts: OutputText['facts'], count: number): OutputText['facts'] {
  if (facts === undefined || count === 0) return facts;
  const { logprobs } = facts;
  return {
    ...facts,
    ids: idsOf(facts)
      .slice(count)
      .map((id) => `${id},`)
      .join(''),
    ...(typeof logprobs === 'string' && { logprobs: logprobs.split('\n').slice(count).join('\n') }),
  };
}
