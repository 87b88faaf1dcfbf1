import { mkdir, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { DarkroomError, type DtypeChoice, dtypeChoiceText } from '@darkroom/core';
import {
  describeModel,
  externalFile,
  pipelineClasses,
  readModelDirectory,
  readOnnxFile,
} from '@darkroom/diffusion/model-files';
import type { PipelineClass } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command-error.ts';
import { download } from '../hub/download.ts';
import { type HubFile, type HubRepo, openHubRepo } from '../hub/hub-repo.ts';
import { sizeText } from '../number-text.ts';
import { chooseFiles } from './choose-files.ts';
import { modelNameOf } from './model-name.ts';
import { readModelSource, sourceFileName, writeModelSource } from './model-source.ts';
import type { Progress } from './progress.ts';

export interface PullModelOptions {
  endpoint: string;
  token: string | undefined;
  /** Such as `owner/name`. */
  repo: string;
  revision: string;
  dtypes: DtypeChoice;
  /** What the model is called here; by default the last part of the repository's name. */
  name: string | undefined;
  /** Where models lie, one directory each. */
  modelsDirectory: string;
  progress: Progress;
  signal: AbortSignal;
  pauseMs?: (failures: number) => number;
  stallMs?: number;
  /** Bytes that fit into a directory; the file system's word by default. */
  freeBytes?: (directory: string) => Promise<number>;
}

/** Left free on the disk. */
const spareBytes = 100_000_000;

/** What a model's directory is called while it is not whole. A name with a dot is no model's. */
export function partialDirectory(modelsDirectory: string, name: string): string {
  return join(modelsDirectory, `.${name}.partial`);
}

/**
 * Downloads what a pipeline needs of a repository. The directory appears under its name when it is whole and can be
 * read; until then it lies beside it, where the next run goes on.
 *
 * @returns the model's directory.
 * @throws CommandError saying what is wrong and what to do.
 */
export async function pullModel(options: PullModelOptions): Promise<{ directory: string; isNew: boolean }> {
  const { repo, revision, dtypes, modelsDirectory, endpoint, token, progress, signal } = options;
  const name = options.name ?? modelNameOf(repo);
  const directory = join(modelsDirectory, name);
  const { pauseMs, stallMs } = options;
  const say = (message: string): void => progress.say(message);
  const retry = { signal, say, ...(pauseMs && { pauseMs }) };
  const hub = openHubRepo({ endpoint, token, repo, ...retry, ...(stallMs && { stallMs }) });
  const commit = await hub.resolveCommit(revision);
  const source = { endpoint, repo, revision, commit, dtype: dtypeChoiceText(dtypes) };
  if (await isThere(directory, source)) return { directory, isNew: false };

  const files = await hub.listFiles(commit);
  const partial = partialDirectory(modelsDirectory, name);
  await mkdir(partial, { recursive: true });
  await writeModelSource(partial, source);
  const fetched: FetchOptions = { hub, commit, directory: partial, progress, ...retry };
  const index = await fetchModelIndex(repo, files, fetched);
  const { small, graphs, likelyWeights } = chooseFiles({ repo, files, ...index, dtypes });
  const freeBytes = options.freeBytes ?? freeBytesOf;

  // Small files and graphs first: what is wrong with them is seen before gigabytes have come.
  const needed = [...small, ...graphs];
  // The files were chosen by their names, which is all that the hub knows. What there is is read as it is.
  const readAs = { id: name };
  progress.expect(sizeOf(needed) + sizeOf(likelyWeights));
  await assertFits([...needed, ...likelyWeights], partial, freeBytes);
  await fetchFiles(needed, fetched);
  await assertReadable(partial, async () => void (await readModelDirectory(partial, readAs)));
  const weights = graphs.flatMap(({ path }) => weightsOf(partial, path, files));
  progress.expect(sizeOf(needed) + sizeOf(weights));
  await assertFits(weights, partial, freeBytes);
  await fetchFiles(weights, fetched);
  progress.end();
  await removeOthers(partial, [...needed, ...weights]);
  await assertReadable(partial, async () => void describeModel(await readModelDirectory(partial, readAs)));
  await rename(partial, directory);
  return { directory, isNew: true };
}

function sizeOf(files: readonly HubFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Whether the same was downloaded before. @throws CommandError if something else has the name. */
async function isThere(directory: string, { repo, commit, dtype }: { repo: string; commit: string; dtype: string }) {
  if ((await stat(directory).catch(() => undefined)) === undefined) return false;
  const there = await readModelSource(directory);
  if (there?.repo === repo && there.commit === commit && there.dtype === dtype) return true;
  const what = there ? `${there.repo} (${there.dtype}, commit ${there.commit.slice(0, 7)})` : 'something else';
  throw new CommandError(`${directory} is there already, from ${what}: remove it, or give another --name`);
}

interface FetchOptions {
  hub: HubRepo;
  commit: string;
  directory: string;
  progress: Progress;
  signal: AbortSignal;
  say: (message: string) => void;
}

async function fetchFiles(files: readonly HubFile[], { progress, ...options }: FetchOptions): Promise<void> {
  for (const file of files) {
    progress.file(file.path, file.size);
    let isFirst = true;
    await download(file, {
      ...options,
      onBytes: (count) => {
        progress.add(count, !isFirst);
        isFirst = false;
      },
    });
  }
}

/** Before anything large is chosen: a pipeline that does not run here is not worth a download. */
async function fetchModelIndex(
  repo: string,
  files: readonly HubFile[],
  options: FetchOptions,
): Promise<{ pipelineClass: PipelineClass; index: Readonly<Record<string, unknown>> }> {
  const file = files.find(({ path }) => path === 'model_index.json');
  if (file === undefined) {
    throw new CommandError(`${repo} is no diffusers model: it has no model_index.json at its top.`);
  }
  await download(file, { ...options, onBytes: () => {} });
  const index = parseModelIndex(await readFile(join(options.directory, file.path), 'utf8'));
  const { _class_name: className } = index;
  const pipelineClass = pipelineClasses.find((known) => known === className);
  if (pipelineClass !== undefined) return { pipelineClass, index };
  const runs = `these run here: ${pipelineClasses.join(', ')}`;
  throw new CommandError(`${repo} is for the pipeline ${JSON.stringify(className)}; ${runs}.`);
}

function parseModelIndex(modelIndex: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(modelIndex) as Record<string, unknown> | null) ?? {};
  } catch {
    throw new CommandError('model_index.json of the repository is not JSON.');
  }
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
  for (const { path, size, checksum } of files) {
    const part = `${path}.${checksum.digest.slice(0, 12)}.part`;
    const found = await Promise.all([path, part].map((name) => stat(join(directory, name)).catch(() => undefined)));
    missing += Math.max(0, size - Math.max(...found.map((file) => file?.size ?? 0)));
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
async function assertReadable(directory: string, read: () => Promise<void>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    throw new CommandError(`It cannot run here: ${error.message}. What came was left in ${directory}.`);
  }
}
