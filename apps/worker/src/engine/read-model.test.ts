import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createLogger } from '@darkroom/service';
import { expect, it, onTestFinished } from 'vitest';
import { checkModelDirectory, readModel } from './read-model.ts';

const writer = resolve(import.meta.dirname, '../../../../models/emoji-writer');

async function linesOf(directory: string): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const log = createLogger({ app: 'test', stream: { write } });
  await readModel({ directory, id: 'writer', dtypes: { all: 'auto', parts: {} }, devices: ['cpu'], threads: 1 }, log);
  return lines;
}

it('warns at load time that the chat template rejects every message, with the reason', async () => {
  expect(await linesOf(writer)).toMatchObject([{ msg: 'text model found', model: 'writer', mode: 'autoregressive' }]);
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp(writer, directory, { recursive: true });
  const file = join(directory, 'tokenizer_config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  const chat_template = "{{ raise_exception('roles must alternate') }}";
  await writeFile(file, JSON.stringify({ ...config, chat_template }));
  expect((await linesOf(directory))[1]).toMatchObject({
    level: 'warn',
    msg: 'the chat template rejects every message: chat requests will fail',
    model: 'writer',
    reason: "messages: the model's template does not take them: roles must alternate",
  });
});

it('refuses a checkpoint of PyTorch with what to do', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const file of ['config.json', 'model.safetensors']) await writeFile(join(directory, file), '{}');
  expect(() => checkModelDirectory(directory)).toThrow(/^that directory holds a checkpoint of PyTorch.*tools\/export/);
  expect(() => checkModelDirectory(writer)).not.toThrow();
});
