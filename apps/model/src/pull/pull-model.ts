import { mkdir, readdir, rename, rm, stat, statfs } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { DarkroomError, dtypeChoiceText, isModelId } from '@darkroom/core';
import { externalFile, readOnnxFile } from '@darkroom/diffusion/model-files';
import type { PullCommand } from '../command/arguments.ts';
import { CommandError } from '../command/command-error.ts';
import { download, partialName } from '../hub/download.ts';
import type { HubAccess } from '../hub/hub-fetch.ts';
import { type HubFile, listHubFiles, resolveCommit } from '../hub/hub-repo.ts';
import { sizeText } from '../command/number-text.ts';
import { type ModelSource, readModelSource, sourceFileName, writeModelSource } from './model-source.ts';
import type { DownloadProgress } from './progress.ts';
import { kindOfFiles } from './pulled-kind.ts';

export interface PullModelOptions extends Omit<HubAccess, 'report'>, Omit<PullCommand, 'command'> {
  /** Directory with one subdirectory per model. */
  modelsDirectory: string;
  progress: DownloadProgress;
  /** Returns the free bytes of a directory's disk; for tests. */
  freeBytes?: (directory: string) => Promise<number>;
}

/** Min. free space left on the disk. */
const spareBytes = 100_000_000;

/**
 * Downloads the files that a pipeline needs. Downloads into a hidden directory, which the next run resumes, and renames
 * it once the model is complete and readable.
 *
 * @returns the model's directory.
 * @throws CommandError saying what is wrong and what to do.
 */
export async function pullModel(options: PullModelOptions): Promise<{ directory: string; isNew: boolean }> {
  const { repo, revision, dtypes, modelsDirectory, endpoint, progress, freeBytes = freeBytesOf } = options;
  const name = options.name ?? modelNameOf(repo);
  const directory = join(modelsDirectory, name);
  const access = { ...options, report: (message: string) => progress.report(message) };
  const commit = await resolveCommit(access, revision);
  const source = { endpoint, repo, revision, commit, dtype: dtypeChoiceText(dtypes) };
  if (await isAlreadyPulled(directory, source)) return { directory, isNew: false };

  const hub = { ...access, commit };
  const files = await listHubFiles(hub);
  const kind = kindOfFiles(repo, files);
  // Model ids do not start with a dot.
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
  // Small files and graphs first: problems in them show before gigabytes are downloaded.
  const needed = [...small, ...graphs];
  await fetchAll(needed, [...needed, ...likelyWeights]);
  // Files were chosen by name, which is all the hub tells; now check their content.
  await readable(partial, kind.read(partial, name));
  const weights = graphs.flatMap(({ path }) => weightsOf(partial, path, files));
  await fetchAll(weights, [...needed, ...weights]);
  progress.end();
  await removeOthers(partial, [...needed, ...weights]);
  await readable(partial, kind.check(partial, name));
  await rename(partial, directory);
  return { directory, isNew: true };
}

/** Derives the local name, which is also the model's id, from the last part of the repository's name. */
function modelNameOf(repo: string): string {
  const name = repo
    .split('/')
    .at(-1)!
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^[._-]+|[._-]+$/g, '');
  if (isModelId(name)) return name;
  throw new CommandError(`${repo} does not yield a valid model id: set one with --name`);
}

function sizeOf(files: readonly HubFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Returns true if the same model exists. @throws CommandError if the directory contains something else. */
async function isAlreadyPulled(directory: string, { repo, commit, dtype }: ModelSource): Promise<boolean> {
  if ((await stat(directory).catch(() => undefined)) === undefined) return false;
  const there = await readModelSource(directory);
  if (there?.repo === repo && there.commit === commit && there.dtype === dtype) return true;
  const what = there ? `${there.repo} (${there.dtype}, commit ${there.commit.slice(0, 7)})` : 'something else';
  throw new CommandError(`${directory} already exists, from ${what}: remove it, or set another --name`);
}

/** Returns the files with a graph's external weights. */
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

/** Removes files of an earlier run with another commit or dtype. */
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
    const names = [file.path, partialName(file)];
    const found = await Promise.all(names.map((name) => stat(join(directory, name)).catch(() => undefined)));
    missing += Math.max(0, file.size - Math.max(...found.map((file) => file?.size ?? 0)));
  }
  const free = await freeBytes(directory);
  if (missing <= free) return;
  throw new CommandError(
    `The disk of ${directory} has ${sizeText(free)} free, expected ${sizeText(missing)}, including a reserve of ${sizeText(spareBytes)}.`,
  );
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Converts errors of a model reader. @throws CommandError if a worker could not read the model. */
async function readable<Value>(directory: string, reading: Promise<Value>): Promise<Value> {
  try {
    return await reading;
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    throw new CommandError(`The model is not supported: ${error.message}. The downloaded files are in ${directory}.`);
  }
}
