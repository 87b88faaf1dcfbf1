import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadTextPipeline } from '../pipelines/load-text-pipeline.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text');

/** Copies a model and sets its max_position_embeddings; the graph has rotary tables for 512 tokens. */
async function copyOf(name: string, tokens: number): Promise<string> {
  const directory = join(await mkdtemp(join(tmpdir(), 'darkroom-decoder-')), 'tiny');
  onTestFinished(() => rm(join(directory, '..'), { recursive: true }));
  await cp(join(vectors, name), directory, { recursive: true });
  const config = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8')) as object;
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: tokens }));
  return directory;
}

it.each(['group-query', 'group-query-uncopied', 'group-query-half', 'plain'])(
  'rejects a graph whose rotary tables are shorter than max_position_embeddings: %s',
  async (name) => {
    await expect(loadTextPipeline({ directory: await copyOf(name, 2048), threads: 1 })).rejects.toMatchObject({
      code: 'model_unsupported',
      message: expect.stringMatching(
        /^onnx\/model\.onnx: cannot read 2048 tokens, the max_position_embeddings of config\.json \(.+\)$/s,
      ) as string,
    });
    // With maxTokens 512, no text gets so long.
    const pipeline = await loadTextPipeline({ directory: await copyOf(name, 2048), threads: 1, maxTokens: 512 });
    expect(pipeline.card.maxModelTokens).toBe(512);
    await pipeline.dispose();
  },
);
