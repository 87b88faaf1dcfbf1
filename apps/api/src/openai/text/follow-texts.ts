import type { OutputInfo, OutputText, RequestEvent } from '@darkroom/core';
import { readOutput } from '@darkroom/store';
import type { ApiContext } from '../../context.ts';
import { ApiError } from '../../http/api-error.ts';
import { followStored } from '../follow-stored.ts';
import { endedWithoutResult } from '../stored-request-error.ts';
import type { ClientWatch } from '../watch-client.ts';

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

export type TextItem = AddedText | ShownBlock | FinishedText;

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
  const finish = function* (output: OutputInfo, timestampMs: number): Generator<FinishedText, void> {
    if (finished.has(output.index)) return;
    yield { type: 'finished', output, text: '', timestampMs };
    // Who could not take it is given it again.
    finished.add(output.index);
  };
  return function* (event) {
    if (event.type === 'delta' || event.type === 'snapshot') {
      const { index, timestampMs } = event;
      const before = all.get(index) ?? { units: 0, tokens: 0 };
      const isLost = event.offset > before.units;
      if (isLost && !mayLose) throw textLost(id);
      const { facts } = event;
      // Without facts: of an older worker, that says nothing of them where a log was made shorter.
      const stays =
        event.type === 'delta' || event.isWhole === true || facts === undefined || facts['settled'] !== undefined;
      if (stays) {
        const piece = newPart(event, before);
        if (piece === undefined) return;
        all.set(index, piece.after);
        const said = isLost ? undefined : piece.facts;
        yield { type: 'added', index, text: piece.text, tokenOffset: before.tokens, facts: said, timestampMs };
      } else if (event.offset === before.units)
        // A worker that goes on where a lost one stood shows blocks again that are done.
        yield { type: 'block', index, text: event.text, tokenOffset: before.tokens, facts, timestampMs };
    } else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield* finish(event.output, event.timestampMs);
    // All of them: the log may have lost what stood in its beginning.
    else if (event.type === 'succeeded') for (const output of event.outputs) yield* finish(output, event.timestampMs);
  };
}

function textLost(id: string): ApiError {
  return new ApiError(410, 'text_lost', `The beginning of the text of request ${id} is no longer kept.`);
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
