/** The writer in the box with a template that knows tools: it was taught none, but is held to their form like any other model. */
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolTemplate } from '@darkroom/testing';

/** Behind the picture model, which is the one that is taken where none is named: the first by name. */
export const caller = 'emoji-writer-caller';

/** Tokens that it reads and writes together: more than it was taught, for prompts with tools. */
const maxTokens = 2048;

/** Makes its directory. */
export async function makeCaller(): Promise<string> {
  const directory = join(await mkdtemp(join(tmpdir(), 'darkroom-caller-')), caller);
  await cp(new URL('../../models/emoji-writer/', import.meta.url), directory, { recursive: true });
  await writeFile(join(directory, 'chat_template.jinja'), toolTemplate);
  const config = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8')) as object;
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: maxTokens }));
  return directory;
}
