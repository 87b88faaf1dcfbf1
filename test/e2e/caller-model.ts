/**
 * The bundled writer with a chat template that supports tools. Grammars enforce the form of its calls: it was not
 * trained on tools.
 */
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolTemplate } from '@darkroom/testing';

/** Sorts after the image model: requests without a model get the first by name. */
export const caller = 'emoji-writer-caller';

/** Context length in tokens: longer than in training, for prompts with tools. */
const maxTokens = 2048;

/** Creates the model's directory and returns its path. */
export async function makeCaller(): Promise<string> {
  const directory = join(await mkdtemp(join(tmpdir(), 'darkroom-caller-')), caller);
  await cp(new URL('../../models/emoji-writer/', import.meta.url), directory, { recursive: true });
  await writeFile(join(directory, 'chat_template.jinja'), toolTemplate);
  const config = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8')) as object;
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: maxTokens }));
  return directory;
}
