/** Looks up the embeddings of tokens, for decoders that read embeddings. */
import { join } from 'node:path';
import { loadOnnxSession, type OnnxSession, type TensorValue } from '@darkroom/runtime';
import { modelFileError, withFileName } from '@darkroom/runtime/model-file';
import { type DecoderRow, type DecoderTokens, firstImageId, idTensor } from '../decoder/decoder-tokens.ts';

/** A loaded `embed_tokens.onnx`. */
export class TokenEmbeddings implements DecoderTokens {
  readonly inputName = 'inputs_embeds';
  readonly #session: OnnxSession;
  readonly #width: number;

  private constructor(session: OnnxSession, width: number) {
    this.#session = session;
    this.#width = width;
  }

  /**
   * Loads the graph on the CPU: a call reads a few rows of a table.
   *
   * @param width numbers per embedding.
   * @throws DarkroomError naming the file: `model_unsupported` if the graph has other inputs or outputs, else
   * `engine_failed` or `out_of_memory`.
   */
  static async load(directory: string, graph: string, width: number): Promise<TokenEmbeddings> {
    const session = await withFileName(graph, loadOnnxSession({ file: join(directory, graph), threads: 1 }));
    const found = session.outputs.find(({ name }) => name === 'inputs_embeds')?.shape.at(-1);
    const hasInput = session.inputs.length === 1 && session.inputs[0]?.name === 'input_ids';
    if (hasInput && (found === width || typeof found === 'string')) return new TokenEmbeddings(session, width);
    await session.dispose();
    throw modelFileError(graph, `expected the input input_ids and the output inputs_embeds [rows, tokens, ${width}]`);
  }

  sampleOf(rows: number, columns: number): TensorValue {
    return { data: new Float32Array(rows * columns * this.#width), dims: [rows, columns, this.#width] };
  }

  async tensorOf(rows: readonly DecoderRow[], columns: number): Promise<TensorValue> {
    const { data } = await this.#session.run({ input_ids: idTensor(rows, columns) }, 'inputs_embeds');
    for (const [row, { ids, embeddings }] of rows.entries()) {
      let from = 0;
      for (const [at, id] of ids.entries()) {
        if (id < firstImageId) continue;
        if (embeddings === undefined) throw new TypeError('an image has no embeddings');
        data.set(embeddings.subarray(from, from + this.#width), (row * columns + at) * this.#width);
        from += this.#width;
      }
    }
    return { data, dims: [rows.length, columns, this.#width] };
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
  }
}
