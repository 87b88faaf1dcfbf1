import type { ChangedText, StoredTextEvent, TextChunk } from '@darkroom/core';
import { joinFacts } from './join-facts.ts';

/**
 * Max. log entries of one output's text before a full snapshot replaces them: 64, or an eighth of all entries so far.
 */
const minEntriesPerSnapshot = 64;

/** A text chunk from the engine. */
export type TextChunkWrite = { type: 'delta' | 'snapshot' } & TextChunk;

type WholeText = TextChunk & ChangedText;

/** Writes that accompany a text chunk. */
export interface TextNotes {
  /**
   * To write first: from this offset on the text differs from the published one, as a rerun may. `whole` is then set
   * too.
   */
  differsFrom?: number;
  /**
   * To write first: the full stable text before the chunk, replacing its log entries. New readers skip what was reset.
   */
  whole?: WholeText;
  /** The chunk is already published. */
  isRepeated?: true;
}

/**
 * The published text of one output. Writes a full snapshot from time to time, less often as the text grows, so that all
 * snapshots together are a few times the text.
 */
export class OutputTextLog {
  /** Text that is final: everything before the block being denoised. */
  #stable: TextChunk = { offset: 0, text: '' };
  /** Last snapshot, which another one may replace. */
  #block: TextChunk | undefined;
  /** Lowest offset that was ever reset. */
  #changedFrom: number | undefined;
  #entries = 0;
  #allEntries = 0;
  /** Part of the text is unknown here, so no full snapshot is possible. */
  #isPartial = false;

  /** @param events events published by earlier deliveries. */
  constructor(events: readonly StoredTextEvent[] = []) {
    for (const event of events) {
      const changedFrom = event.type === 'reset' ? event.offset : event.changedFrom;
      if (changedFrom !== undefined) this.#change(changedFrom);
      if (event.type === 'reset') this.#truncate(event.offset);
      else this.#apply(event);
    }
  }

  add(chunk: TextChunkWrite): TextNotes {
    const { type, offset, text } = chunk;
    const published = this.#text.slice(offset);
    this.#isPartial ||= offset > this.#text.length;
    if (this.#isPartial) return {};
    if (this.#isPublished(chunk)) return { isRepeated: true };
    const differs = type === 'delta' && !text.startsWith(published);
    if (differs) this.#change(offset);
    const whole = this.#apply(chunk, differs);
    return { ...(differs && { differsFrom: offset }), ...(whole && { whole }) };
  }

  /**
   * Returns the writes needed when the published text differs from the final output: a rerun may write less or nothing.
   */
  finish(output: string): Pick<TextNotes, 'differsFrom' | 'whole'> {
    const standing = this.#text;
    if (this.#isPartial || standing === output) return {};
    let differsFrom = 0;
    while (differsFrom < output.length && standing[differsFrom] === output[differsFrom]) differsFrom += 1;
    return { differsFrom, whole: { offset: 0, text: output, changedFrom: this.#changeAt(differsFrom) } };
  }

  /** Returns true if the chunk is already published: a rerun repeats text, and denoises blocks that are final. */
  #isPublished(chunk: TextChunkWrite): boolean {
    const { type, offset, text, done } = chunk;
    const { text: stable, done: stableDone } = this.#stable;
    if (!isFinal(chunk)) return offset < stable.length;
    // Tokens without text yet are only counted.
    if (text === '') return done !== undefined && stableDone !== undefined && done <= stableDone;
    return type === 'delta' ? this.#text.startsWith(text, offset) : stable.startsWith(text, offset);
  }

  get #text(): string {
    return this.#stable.text + (this.#block?.text ?? '');
  }

  /** Applies a chunk. @returns the full stable text before it if a snapshot is due. */
  #apply(chunk: TextChunkWrite, differs = false): WholeText | undefined {
    const { type, offset, text, done, facts } = chunk;
    const piece = { offset, text, ...(done !== undefined && { done }), ...(facts && { facts }) };
    // A chunk that starts later makes the block before it final.
    if (this.#block !== undefined && (type === 'delta' || offset > this.#block.offset)) {
      this.#stable = append(this.#stable, this.#block);
      this.#block = undefined;
    }
    this.#isPartial ||= offset > this.#stable.text.length;
    this.#truncate(offset);
    const changedFrom = this.#changedFrom;
    const whole =
      this.#isDue() || differs ? { ...this.#stable, ...(changedFrom !== undefined && { changedFrom }) } : undefined;
    const isStable = isFinal(chunk);
    if (isStable) this.#stable = append(this.#stable, piece);
    this.#block = isStable ? undefined : piece;
    return whole;
  }

  #changeAt(offset: number): number {
    return Math.min(offset, this.#changedFrom ?? offset);
  }

  #change(offset: number): void {
    this.#changedFrom = this.#changeAt(offset);
  }

  /** Truncates the stable text; the metadata of a prefix is unknown. */
  #truncate(length: number): void {
    if (this.#block !== undefined && length < this.#stable.text.length) this.#block = undefined;
    if (length < this.#stable.text.length) this.#stable = { offset: 0, text: this.#stable.text.slice(0, length) };
  }

  /** Counts an entry. @returns true if a full snapshot is due; never while a block is being denoised. */
  #isDue(): boolean {
    this.#entries += 1;
    this.#allEntries += 1;
    if (this.#block !== undefined || this.#entries <= Math.max(minEntriesPerSnapshot, this.#allEntries / 8))
      return false;
    this.#entries = 1;
    return true;
  }
}

/** Returns true if the chunk is final: all are, except snapshots with metadata that do not report settled tokens. */
function isFinal({ type, facts, isWhole }: TextChunkWrite & { isWhole?: true }): boolean {
  return type === 'delta' || isWhole === true || facts === undefined || facts['settled'] !== undefined;
}

function append(whole: TextChunk, { text, done, facts: right }: TextChunk): TextChunk {
  const facts = joinFacts(whole.facts, right);
  return { offset: 0, text: whole.text + text, ...(done !== undefined && { done }), ...(facts && { facts }) };
}
