import { type OutputInfo, type OutputText, type StoredEvent, textAfter, type StoredTextEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiContext } from '../../context/context.ts';
import { ApiError } from '../../http/api-error.ts';
import { followStored } from '../../answer/follow-stored.ts';
import { endedWithoutResult } from '../../answer/stored-request-error.ts';
import type { ClientWatch } from '../../answer/watch-client.ts';

/** Text that was appended and is final, unless a rerun retracts it (`TakenBackText`). */
export interface AddedText {
  type: 'added';
  index: number;
  text: string;
  /** Number of tokens before this chunk. */
  tokenOffset: number;
  /** Metadata of exactly this chunk (`TextPieceFacts`); absent after a gap in the log, or if there is none. */
  facts?: OutputText['facts'] | undefined;
  timestampMs: number;
}

/** The unfinished block of a block-diffusion model, after all final text. */
export interface ShownBlock extends Omit<AddedText, 'type'> {
  type: 'block';
}

/** The end of a text. */
export interface FinishedText {
  type: 'finished';
  output: OutputInfo;
  /** The full text; empty if `withText` is false. */
  text: string;
  timestampMs: number;
}

/** Retraction: a rerun wrote a different text, so only the first `length` code units remain valid. */
export interface TakenBackText {
  type: 'taken-back';
  index: number;
  /** UTF-16 code units that remain. */
  length: number;
}

export type TextItem = AddedText | ShownBlock | FinishedText | TakenBackText;

interface FollowTextsOptions {
  id: string;
  watch: ClientWatch;
  /** Reads the full text of finished outputs; a log that was trimmed is then no error. */
  withText?: boolean;
}

/**
 * Yields the texts of a request as workers write them, each chunk once, even if a rerun repeats it. `sequence` is the
 * sequence number of the event from which an item was made. Throws as `followStored` and `createTextFollower`.
 */
export function followTexts(
  context: ApiContext,
  { id, watch, withText = false }: FollowTextsOptions,
): AsyncGenerator<(TextItem & { sequence: number }) | 'heartbeat', void> {
  const itemsOf = createTextFollower(id, { allowGaps: withText });
  /**
   * Items of the last event, which is read again if Redis becomes unavailable. After a failover that lost events,
   * another event may have its sequence number.
   */
  let current: { sequence: number; type: string; items: readonly (TextItem & { sequence: number })[] } | undefined;
  return followStored(context, id, watch, async (event) => {
    const { sequence, type } = event;
    if (current?.sequence !== sequence || current.type !== type)
      current = { sequence, type, items: itemsOf(event).map((item) => ({ ...item, sequence })) };
    for (const item of current.items)
      if (item.type === 'finished' && withText) item.text = await readFullText(context, id, item.output.index);
    return current.items;
  });
}

async function readFullText({ withStore }: ApiContext, id: string, index: number): Promise<string> {
  const stored = await withStore((store) => readOutput(store, id, index));
  if (stored === undefined) throw endedWithoutResult(id, 'succeeded', undefined);
  return stored.data.toString('utf8');
}

/** Text that was emitted so far; `units` are its UTF-16 code units. */
interface EmittedText {
  units: number;
  tokens: number;
  text: string;
  /** Text in the log after a reset, while it is a proper prefix of the emitted text. */
  rewritten?: string | undefined;
}

/**
 * Creates a function that turns the events of a request into text items, each chunk once. It throws 410 if the log was
 * trimmed before text that was not read yet; with `allowGaps` it continues and omits the metadata of the next chunk.
 */
export function createTextFollower(
  id: string,
  { allowGaps = false }: { allowGaps?: boolean } = {},
): (event: StoredEvent) => readonly TextItem[] {
  const all = new Map<number, EmittedText>();
  const finished = new Set<number>();
  const finish = (output: OutputInfo, timestampMs: number): TextItem[] => {
    if (finished.has(output.index)) return [];
    finished.add(output.index);
    return [...retractRest(all, output.index), { type: 'finished', output, text: '', timestampMs }];
  };
  return (event) => {
    if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
      return readText(all, event, { id, allowGaps });
    if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      return finish(event.output, event.timestampMs);
    // Return every output: the log may have been trimmed, so earlier `output` events may be missing.
    if (event.type === 'succeeded') return event.outputs.flatMap((output) => finish(output, event.timestampMs));
    return [];
  };
}

function textLost(id: string): ApiError {
  return new ApiError(410, 'text_lost', `The beginning of the text of request ${id} is no longer stored.`);
}

function readText(
  all: Map<number, EmittedText>,
  event: StoredTextEvent,
  { id, allowGaps }: { id: string; allowGaps: boolean },
): TextItem[] {
  const { index, timestampMs } = event;
  const before = all.get(index) ?? { units: 0, tokens: 0, text: '' };
  const isCut = event.type === 'reset' ? event.offset < before.units : isCompactedReset(event, before);
  if (isCut || before.rewritten !== undefined) return compareRerun(all, event, before);
  if (event.type === 'reset') return [];
  const isLost = event.offset > before.units;
  if (isLost && !allowGaps) throw textLost(id);
  const { facts } = event;
  if (isFinal(event)) {
    const piece = newPart(event, before);
    if (piece === undefined) return [];
    all.set(index, { ...piece.after, text: before.text.padEnd(event.offset) + piece.text });
    const knownFacts = isLost ? undefined : piece.facts;
    return [{ type: 'added', index, text: piece.text, tokenOffset: before.tokens, facts: knownFacts, timestampMs }];
  }
  // Skip other offsets: a worker that resumes a lost one's request writes finished blocks again.
  if (event.offset !== before.units) return [];
  return [{ type: 'block', index, text: event.text, tokenOffset: before.tokens, facts, timestampMs }];
}

/** Returns true if the text is final: all is, except snapshots with metadata that do not report settled tokens. */
function isFinal(event: Exclude<StoredTextEvent, { type: 'reset' }>): boolean {
  const { type, isWhole, facts } = event;
  return type === 'delta' || isWhole === true || facts === undefined || facts['settled'] !== undefined;
}

/** Tells whether a snapshot of the full text replaced a reset: it is shorter than the emitted text. */
function isCompactedReset(
  { isWhole, offset, text }: Exclude<StoredTextEvent, { type: 'reset' }>,
  { units }: EmittedText,
): boolean {
  return isWhole === true && offset + text.length < units;
}

/** Compares a rerun's text with the emitted text. Emits a retraction only if they differ. */
function compareRerun(all: Map<number, EmittedText>, event: StoredTextEvent, before: EmittedText): TextItem[] {
  if (event.type !== 'reset' && !isFinal(event)) return [];
  const { index, timestampMs } = event;
  const rewritten = textAfter(before.rewritten ?? before.text, event);
  const { text, tokens: tokenOffset } = before;
  if (text.startsWith(rewritten)) {
    all.set(index, { ...before, rewritten: rewritten === text ? undefined : rewritten });
    return [];
  }
  const length = sharedLength(text, rewritten);
  const done = (event.type === 'reset' ? undefined : event.done) ?? tokenOffset;
  all.set(index, { units: rewritten.length, tokens: done, text: rewritten });
  const added: AddedText = { type: 'added', index, text: rewritten.slice(length), tokenOffset, timestampMs };
  return length < text.length ? [{ type: 'taken-back', index, length }, added] : [added];
}

/** Retracts the emitted text that a rerun had not written again when the output ended. */
function retractRest(all: Map<number, EmittedText>, index: number): TakenBackText[] {
  const { rewritten, ...added } = all.get(index) ?? { rewritten: undefined, units: 0, tokens: 0, text: '' };
  if (rewritten === undefined) return [];
  all.set(index, { ...added, units: rewritten.length, text: rewritten });
  return [{ type: 'taken-back', index, length: rewritten.length }];
}

function sharedLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

/** Returns the part of a chunk that was not emitted before; undefined if there is none. */
function newPart({ offset, text, done, facts }: OutputText, before: EmittedText) {
  const known = Math.max(0, before.units - offset);
  if (known >= text.length && (done === undefined ? known > 0 : done <= before.tokens)) return undefined;
  const ids = idsOf(facts);
  const tokens = done ?? before.tokens + ids.length;
  const after = { units: Math.max(before.units, offset + text.length), tokens: Math.max(before.tokens, tokens) };
  // Number of its tokens that earlier chunks contained.
  const emittedTokens = Math.max(0, before.tokens - (tokens - ids.length));
  return {
    text: text.slice(known),
    facts: known > 0 && done === undefined ? undefined : dropTokens(facts, emittedTokens),
    after,
  };
}

function idsOf(facts: OutputText['facts']): string[] {
  return String(facts?.['ids'] ?? '')
    .split(',')
    .slice(0, -1);
}

/** Removes the first `count` tokens from the metadata of a chunk. */
function dropTokens(facts: OutputText['facts'], count: number): OutputText['facts'] {
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
