/**
 * Text token by token: each step gives every row its next token. A row joins and leaves at any step, and rows of any length
 * share one call of the model. A prompt is read in pieces, within a budget for each step, so that those who write never wait
 * for more than one of them.
 *
 * Known limits: one graph, no images, no adapters, no speculative decoding.
 */
import type { DarkroomError, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';
import { adjustLogits, createLogitAdjustment, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import { chooseToken } from '../sampling/choose-token.ts';
import { tokenLogprob } from '../sampling/token-logprobs.ts';
import { checkTextRequest, type TextRequest } from '../row/text-request.ts';
import { decodeTextCheckpoint, encodeTextCheckpoint, indexesOf, startText } from '../row/text-row.ts';
import { textOutput, type TextRow } from '../row/text-row.ts';
import { notNumbers, shareStep, stepBudget, type TextPipeline, type TextPipelineOptions } from './text-pipeline.ts';

/** One text that grows at its end. */
export interface AutoregressiveRow extends TextRow {
  readonly adjustment: LogitAdjustment;
  /** Tokens of prompt and text that are not in the cache: the last of them leads to the next. */
  readonly unread: number;
  /** Whether it said how far it is since it was made. */
  hasSaidProgress: boolean;
}

/** Its tokens come by themselves: how far it is, each says once in so many of them. */
const progressEvery = 16;

export class AutoregressivePipeline implements TextPipeline<AutoregressiveRow> {
  readonly card: TextPipelineOptions['card'];
  readonly components: TextPipeline['components'];
  readonly #options: TextPipelineOptions;
  readonly #rows = new Set<AutoregressiveRow>();

  constructor(options: TextPipelineOptions) {
    this.#options = options;
    this.card = options.card;
    this.components = [options.component];
  }

  // oxlint-disable-next-line require-await
  async createRows(rowRequest: RowRequest): Promise<AutoregressiveRow[]> {
    const request = checkTextRequest(rowRequest.input, this.card);
    const made = indexesOf(rowRequest, request).map((index) => this.#createRow(rowRequest, request, index));
    for (const row of made) this.#rows.add(row);
    return made;
  }

  async step(rows: readonly AutoregressiveRow[]): Promise<StepReport<AutoregressiveRow>> {
    const budget = stepBudget(rows, this.#rows, this.#options.stepTokens);
    const parts = shareStep(rows, budget, ({ unread }) => Math.min(unread, budget));
    const reads = parts.map(({ row, count }) => {
      const logitsFrom = count === row.unread ? count - 1 : count;
      return { cache: row.cache, ids: unreadIds(row, count), keeps: true, logitsFrom };
    });
    const logits = await this.#options.decoder.run(reads);
    const events = new Map<AutoregressiveRow, readonly RowEvent[]>();
    const failures = new Map<AutoregressiveRow, DarkroomError>();
    for (const [at, { row }] of parts.entries()) {
      if (logits[at]!.length === 0) continue;
      const said = this.#writeToken(row, logits[at]!);
      if (said === undefined) failures.set(row, notNumbers());
      else events.set(row, said);
    }
    return { modelRows: parts.length, events, failures };
  }

  finish(row: AutoregressiveRow) {
    return Promise.resolve(textOutput(row));
  }

  checkpoint({ written: { tokens }, random, calls }: AutoregressiveRow): RowCheckpoint {
    return encodeTextCheckpoint(tokens.length, { tokens, random: random.snapshot(), calls });
  }

  release(row: AutoregressiveRow): void {
    this.#rows.delete(row);
    row.cache = this.#options.decoder.createCache();
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async dispose(): Promise<void> {
    await this.#options.decoder.dispose();
  }

  #createRow(rowRequest: RowRequest, request: TextRequest, index: number): AutoregressiveRow {
    const { codec, config, decoder } = this.#options;
    const { limit, prompt } = request;
    const { vocabularySize } = codec;
    const checkpoint = decodeTextCheckpoint(rowRequest.checkpoints?.get(index)?.data, { limit, vocabularySize });
    return {
      ...startText({ request, index, codec, endIds: config.endIds, checkpoint }),
      index,
      slots: prompt.length + limit,
      cache: decoder.createCache(),
      cachedTokens: 0,
      adjustment: createLogitAdjustment(request),
      hasSaidProgress: false,
      get unread() {
        return prompt.length + this.written.tokens.length - this.cache.length;
      },
      get shapeKey() {
        return this.unread > 1 ? 'read' : 'write';
      },
      get isDone() {
        return this.written.end !== undefined;
      },
      // Only of the last token that there is room for it is known that it is the last.
      get stepsLeft() {
        return this.unread === 1 && this.written.tokens.length === limit - 1 ? 1 : undefined;
      },
    };
  }

  /** @param logits after the row's last token; they are changed. */
  #writeToken(row: AutoregressiveRow, logits: Float32Array): RowEvent[] | undefined {
    const { codec } = this.#options;
    const { request, written, adjustment, random } = row;
    // A model may have more logits than there are tokens.
    const known = logits.subarray(0, codec.vocabularySize);
    adjustLogits(known, adjustment, written.counts);
    const id = chooseToken(known, request, random);
    if (id === -1) return undefined;
    const { logprobs } = request;
    const line = logprobs === undefined ? undefined : JSON.stringify(tokenLogprob(known, id, logprobs, codec));
    written.push(id, line && `${line}\n`);
    row.calls += 1;
    const delta = written.takeDelta();
    return [...progressOf(row), ...(delta === undefined ? [] : [delta])];
  }
}

function unreadIds({ request: { prompt }, written: { tokens }, cache }: AutoregressiveRow, count: number): number[] {
  const from = cache.length;
  return Array.from({ length: count }, (_, at) => prompt[from + at] ?? tokens[from + at - prompt.length]!);
}

function progressOf(row: AutoregressiveRow): RowEvent[] {
  const done = row.written.tokens.length;
  if (row.hasSaidProgress && done % progressEvery !== 0) return [];
  row.hasSaidProgress = true;
  return [{ type: 'progress', done, total: row.request.limit }];
}
