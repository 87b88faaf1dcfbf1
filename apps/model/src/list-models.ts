import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { listDtypes, imageDtypes, type PipelineFolders, readModelDirectory } from '@darkroom/diffusion/model-files';
import { isTextModel, listTextDtypes, readTextModelDirectory } from '@darkroom/language/model-files';
import { sizeText } from './command/number-text.ts';
import { readModelSource } from './pull/model-source.ts';
import { table } from './command/table.ts';

/** Formats the models of a directory as a table, with reasons for those that cannot be read. */
export async function listModelDirectory(modelsDirectory: string): Promise<string> {
  const entries = await readdir(modelsDirectory, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => !entry.isFile()).map(({ name }) => name);
  const rows: string[][] = [];
  const notes: string[] = [];
  for (const name of names.toSorted()) {
    const partial = /^\.(?<model>.+)\.partial$/.exec(name)?.groups?.['model'];
    if (partial !== undefined) notes.push(`${partial} is incomplete: run the same pull again to resume`);
    if (name.startsWith('.')) continue;
    const directory = join(modelsDirectory, name);
    try {
      rows.push(await describe(directory));
    } catch (error) {
      notes.push(`${name} cannot be read: ${(error as Error).message}`);
    }
  }
  const list =
    rows.length === 0 ? 'no models' : table([['id', 'kind', 'mode', 'family', 'dtypes', 'on disk', 'from'], ...rows]);
  return [list, ...notes].join('\n');
}

async function describe(directory: string): Promise<string[]> {
  const source = await readModelSource(directory);
  const from = source === undefined ? '' : `${source.repo} ${source.commit.slice(0, 7)}`;
  const facts = (await isTextModel(directory)) ? await factsOfText(directory) : await factsOfImages(directory);
  return [...facts, sizeText(await bytesOf(directory)), from];
}

async function factsOfText(directory: string): Promise<string[]> {
  const { card, config } = await readTextModelDirectory(directory);
  const dtypes = await listTextDtypes(directory, config.type);
  return [card.id, card.kind, card.mode, config.type, dtypes.join(' ')];
}

async function factsOfImages(directory: string): Promise<string[]> {
  const { card, pipelineClass, folders } = await readModelDirectory(directory);
  const dtypes = await dtypesOf(directory, folders);
  return [card.id, card.kind, 'diffusion', pipelineClass, dtypes.join(' ') || 'mixed'];
}

/** Returns the dtypes that all parts have. */
async function dtypesOf(directory: string, folders: PipelineFolders): Promise<string[]> {
  const there = [...(await listDtypes(directory, folders)).values()];
  return imageDtypes.filter((dtype) => there.every((dtypes) => dtypes.includes(dtype)));
}

async function bytesOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  const sizes = await Promise.all(files.map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
