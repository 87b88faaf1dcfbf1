import { DarkroomError, type Pipeline, type PipelineComponent, type RowCheckpoint } from '@darkroom/core';
import type { NonEmpty, RowOutput, RowRequest, StepReport, TokenCounts } from '@darkroom/core';
import type { Grammars, TextCard, TextCodec } from '@darkroom/kinds';
import type { Decoder } from '../decoder/decoder.ts';
import type { ImageEncoder } from '../vision/image-encoder.ts';
import type { TextModelConfig } from '../model/text-model-config.ts';
import { checkTextRequest } from '../row/text-row-request.ts';
import { readPromptImages, RowImages } from '../row/row-images.ts';
import { decodeTextCheckpoint, type TextRow, type TextRowOptions } from '../row/text-row.ts';

/** Options common to both kinds of pipelines. */
export interface TextPipelineOptions {
  card: TextCard;
  config: TextModelConfig;
  codec: TextCodec;
  decoder: Decoder;
  /** Matches texts with their constraints; block diffusion supports none. */
  grammars: Grammars;
  component: PipelineComponent;
  /** Encodes images, of models that read them. */
  imageEncoder?: ImageEncoder | undefined;
  /** Prompt tokens per step while other rows write, which wait for it. */
  stepTokens: number;
  /** Memory limit of the prefix cache, in tokens; block diffusion has none. */
  prefixCacheTokens: number;
  /** Memory limit of all caches, in tokens: rows share buffers, in which each is as long as the longest. */
  memoryTokens: number;
  /** True if tokens read one by one leave the same bits in a cache as tokens read in chunks. */
  singlesMatchChunks: boolean;
}

/** A loaded text model: what both kinds of pipelines do in the same way. */
export abstract class TextPipeline<Row extends TextRow = TextRow> implements Pipeline<Row> {
  readonly card: TextCard;
  readonly components: readonly PipelineComponent[];
  protected readonly options: TextPipelineOptions;
  /** All rows that were not released. */
  protected readonly rows = new Set<Row>();

  constructor(options: TextPipelineOptions) {
    this.options = options;
    this.card = options.card;
    const { component, imageEncoder } = options;
    this.components = imageEncoder === undefined ? [component] : [component, imageEncoder.component];
  }

  async createRows({ input, owner, indexes, checkpoints, attachments }: RowRequest): Promise<Row[]> {
    const { codec, config } = this.options;
    const checked = checkTextRequest(input, this.card);
    const read = config.images && (await readPromptImages(checked.prompt, attachments, config.images));
    const request = read === undefined ? checked : { ...checked, prompt: read.prompt };
    // All texts of a request share its images.
    const images =
      read && read.images.length > 0 ? new RowImages(read.prompt, read.images, config.hiddenSize) : undefined;
    const { vocabularySize } = this.card;
    const created = (indexes ?? Array.from({ length: request.n }, (_, index) => index)).map((index) => {
      const checkpoint = decodeTextCheckpoint(checkpoints?.get(index)?.data, { limit: request.limit, vocabularySize });
      return this.createRow({ request, owner, index, codec, endIds: config.endIds, checkpoint, images });
    });
    for (const row of created) this.rows.add(row);
    return created;
  }

  protected abstract createRow(options: TextRowOptions): Row;

  fitsMemory(row: Row, others: readonly Row[]): boolean {
    const longest = others.reduce((max, { slots }) => Math.max(max, slots), row.slots);
    return (others.length + 1) * longest <= this.options.memoryTokens;
  }

  abstract step(rows: NonEmpty<Row>): Promise<StepReport<Row>>;

  finish({ output }: Row): Promise<RowOutput> {
    return Promise.resolve(output);
  }

  abstract checkpoint(row: Row): RowCheckpoint;

  abstract release(row: Row): void;

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async dispose(): Promise<void> {
    const { decoder, grammars, imageEncoder } = this.options;
    await Promise.all([decoder.dispose(), grammars.dispose(), imageEncoder?.dispose()]);
  }
}

const noTokens: TokenCounts = { read: 0, cached: 0, written: 0, calls: 0 };

/** Counts the rows' tokens since `before`. */
export function countTokens(rows: readonly TextRow[], before: TokenCounts = noTokens): TokenCounts {
  const sum = (amountOf: (row: TextRow) => number): number => rows.reduce((total, row) => total + amountOf(row), 0);
  const known = sum(({ cache, request }) => Math.min(cache.length, request.prompt.length));
  const cached = sum((row) => row.takenTokens);
  return {
    read: known - cached - before.read,
    cached: cached - before.cached,
    written: sum(({ written }) => written.tokens.length) - before.written,
    calls: sum(({ calls }) => calls) - before.calls,
  };
}

/** The error of a row whose logits are invalid. */
export function invalidLogitsError(): DarkroomError {
  const message = 'the text could not be written: the model returned logits that are not numbers';
  return new DarkroomError('engine_failed', 'language.step', message);
}

/** The error of a row whose constraint cannot be met. */
export function constraintError(problem: string): DarkroomError {
  return new DarkroomError('invalid_request', 'language.step', `the grammar of the text: ${problem}`);
}
