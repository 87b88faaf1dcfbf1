/** Tests models with more logits than tokens, such as Qwen. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { textInput, TextTable } from '../testing/text-table.ts';
import { loadTextPipeline } from './load-text-pipeline.ts';

const known = 5120;

it.each(['emoji-writer', 'emoji-writer-diffusion'])('%s never chooses a padding logit', async (name) => {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-padded-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp(resolve(import.meta.dirname, '../../../../models', name), directory, { recursive: true });
  const file = join(directory, 'tokenizer.json');
  const tokenizer = JSON.parse(await readFile(file, 'utf8')) as { model: { vocab: Record<string, number> } };
  const vocab = Object.fromEntries(Object.entries(tokenizer.model.vocab).filter(([, id]) => id < known));
  await writeFile(file, JSON.stringify({ ...tokenizer, model: { ...tokenizer.model, vocab, merges: [] } }));
  const pipeline = await loadTextPipeline({ directory, id: 'padded', threads: 1 });
  onTestFinished(() => pipeline.dispose());
  // A threshold of 0 accepts any drawn token in blocks, not only probable ones.
  const drawn = { temperature: 2, confidenceThreshold: 0 };
  const input = textInput({ prompt: [1, 285, 202, 68], ...drawn, ignoreEos: true, maxTokens: 200 });
  const { tokens } = await new TextTable(pipeline).write(input);
  expect(tokens).toHaveLength(200);
  expect(Math.max(...tokens)).toBeLessThan(known);
});
