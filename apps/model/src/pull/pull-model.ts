import { mkdir, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { DarkroomError, dtypeChoiceText, isModelId } from '@darkroom/core';
import { externalFile, readOnnxFile } from '@darkroom/diffusion/model-files';
import type { PullCommand } from '../arguments.ts';
import { CommandError } from '../command-error.ts';
import { download, partOf } from '../hub/download.ts';
import type { HubAccess } from '../hub/hub-fetch.ts';
import { type HubFile, listHubFiles, resolveCommit } from '../hub/hub-repo.ts';
import { sizeText } from '../number-text.ts';
import { type ModelSource, readModelSource, sourceFileName, writeModelSource } from './model-source.ts';
import type { Progress } from './progress.ts';
import { kindOfFiles } from './pulled-kind.ts';

export interface PullModelOptions extends Omit<HubAccess, 'say'>, Omit<PullCommand, 'command'> {
  /** Where models lie, one directory each. */
  modelsDirectory: string;
  progress: Progress;
  /** Bytes that fit into a directory; the file system's word by default. */
  freeBytes?: (directory: string) => Promise<number>;
}

/** Left free on the disk. */
const spareBytes = 100_000_000;

/**
 * Downloads what a pipeline needs of a repository. The directory appears under its name when it is whole and can be
 * read; until then it lies beside it, where the next run goes on.
 *
 * @returns the model's directory.
 * @throws CommandError saying what is wrong and what to do.
 */
export async function pullModel(options: PullModelOptions): Promise<{ directory: string; isNew: boolean }> {
  const { repo, revision, dtypes, modelsDirectory, endpoint, progress, freeBytes = freeBytesOf } = options;
  const name = options.name ?? modelNameOf(repo);
  const directory = join(modelsDirectory, name);
  const access = { ...options, say: (message: string) => progress.say(message) };
  const commit = await resolveCommit(access, revision);
  const source = { endpoint, repo, revision, commit, dtype: dtypeChoiceText(dtypes) };
  if (await isThere(directory, source)) return { directory, isNew: false };

  const hub = { ...access, commit };
  const files = await listHubFiles(hub);
  const kind = kindOfFiles(repo, files);
  // A name with a dot is no model's.
  const partial = join(modelsDirectory, `.${name}.partial`);
  await mkdir(partial, { recursive: true });
  await writeModelSource(partial, source);
  const choosing = kind.choose({ hub, files, directory: partial, dtypes });
  const { small, graphs, likelyWeights } = await readable(partial, choosing);

  const fetchAll = async (wanted: readonly HubFile[], all: readonly HubFile[]): Promise<void> => {
    progress.expect(sizeOf(all));
    await assertFits(all, partial, freeBytes);
    for (const file of wanted) {
      progress.file(file.path, file.size);
      await download(file, { hub, directory: partial, onBytes: (...bytes) => progress.add(...bytes) });
    }
  };
  // Small files and graphs first: what is wrong with them is seen before gigabytes have come.
  const needed = [...small, ...graphs];
  await fetchAll(needed, [...needed, ...likelyWeights]);
  // The files were chosen by their names, which is all that the hub knows. What there is is read as it is.
  await readable(partial, kind.read(partial, name));
  const weights = graphs.flatMap(({ path }) => weightsOf(partial, path, files));
  await fetchAll(weights, [...needed, ...weights]);
  progress.end();
  await removeOthers(partial, [...needed, ...weights]);
  await readable(partial, kind.check(partial, name));
  await rename(partial, directory);
  return { directory, isNew: true };
}

/** What a repository is called here, where a model's name is also its id in requests: the last part of its own name. */
function modelNameOf(repo: string): string {
  const name = repo
    .split('/')
    .at(-1)!
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^[._-]+|[._-]+$/g, '');
  if (isModelId(name)) return name;
  throw new CommandError(`${repo} does not make a model's name: give one with --name`);
}

function sizeOf(files: readonly HubFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Whether the same was downloaded before. @throws CommandError if something else has the name. */
async function isThere(directory: string, { repo, commit, dtype }: ModelSource): Promise<boolean> {
  if ((await stat(directory).catch(() => undefined)) === undefined) return false;
  const there = await readModelSource(directory);
  if (there?.repo === repo && there.commit === commit && there.dtype === dtype) return true;
  const what = there ? `${there.repo} (${there.dtype}, commit ${there.commit.slice(0, 7)})` : 'something else';
  throw new CommandError(`${directory} is there already, from ${what}: remove it, or give another --name`);
}

/** The files that a graph says its weights are in. */
function weightsOf(directory: string, graph: string, files: readonly HubFile[]): HubFile[] {
  const locations = tensorsOf(directory, graph).flatMap(({ external }) => external?.location ?? []);
  return [...new Set(locations)].map((location) => {
    const path = externalFile(graph, location);
    const file = files.find((file) => file.path === path);
    if (file !== undefined) return file;
    throw new CommandError(`${graph} has its weights in ${path}, which the repository does not have.`);
  });
}

function tensorsOf(directory: string, graph: string): ReturnType<typeof readOnnxFile>['tensors'] {
  try {
    return readOnnxFile(join(directory, graph)).tensors;
  } catch (error) {
    throw new CommandError(`${graph} of the repository is not a whole ONNX file: ${(error as Error).message}`);
  }
}

/** What an earlier run of another commit or dtype left. */
async function removeOthers(directory: string, files: readonly HubFile[]): Promise<void> {
  const kept = new Set([sourceFileName, ...files.map(({ path }) => path)]);
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isDirectory() && !kept.has(relative(directory, path))) await rm(path);
  }
}

async function assertFits(
  files: readonly HubFile[],
  directory: string,
  freeBytes: (directory: string) => Promise<number>,
): Promise<void> {
  let missing = spareBytes;
  for (const file of files) {
    const names = [file.path, partOf(file)];
    const found = await Promise.all(names.map((name) => stat(join(directory, name)).catch(() => undefined)));
    missing += Math.max(0, file.size - Math.max(...found.map((file) => file?.size ?? 0)));
  }
  const free = await freeBytes(directory);
  if (missing <= free) return;
  throw new CommandError(
    `The disk of ${directory} has ${sizeText(free)} free, and ${sizeText(missing)} are needed, ${sizeText(spareBytes)} of them to spare.`,
  );
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** @throws CommandError if a worker could not even read it. */
async function readable<Value>(directory: string, reading: Promise<Value>): Promise<Value> {
  try {
    return await reading;
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    throw new CommandError(`It cannot run here: ${error.message}. What came was left in ${directory}.`);
  }
}
