/**
 * One model repository of the Hugging Face hub, through the hub's own library. Files come by plain HTTP with ranges and
 * not by the library's Xet protocol, so that mirrors and proxies do and a broken download goes on where it was.
 */
import { downloadFile, type ListFileEntry, listFiles, modelInfo } from '@huggingface/hub';
import { CommandError } from '../command-error.ts';
import { brokenConnection, BrokenConnectionError } from './broken-connection-error.ts';
import type { Checksum } from './checksum.ts';
import { createHubFetch } from './hub-fetch.ts';
import { type RetryOptions, retrying } from './retrying.ts';

/** A file of a repository. */
export interface HubFile {
  /** From the top of the repository, with `/`. */
  readonly path: string;
  readonly size: number;
  readonly checksum: Checksum;
}

export interface HubRepoOptions extends RetryOptions {
  endpoint: string;
  token: string | undefined;
  /** Such as `owner/name`. */
  repo: string;
  /** How long a connection may be silent. */
  stallMs?: number;
}

export interface HubRepo {
  /** The commit that a branch, tag or commit stands for right now. */
  resolveCommit(revision: string): Promise<string>;
  /** All files of a commit. @throws CommandError if a name would lie outside of a directory. */
  listFiles(commit: string): Promise<HubFile[]>;
  /**
   * The bytes of a file from a place on.
   *
   * @throws BrokenConnectionError in the middle of it, when the connection breaks; RangeIgnoredError at once.
   */
  read(file: HubFile, commit: string, start: number): AsyncGenerator<Uint8Array>;
}

/** The server sends the whole file whatever part of it is asked for. */
export class RangeIgnoredError extends Error {}

export function openHubRepo(options: HubRepoOptions): HubRepo {
  const { endpoint, token, repo, signal, stallMs = 60_000 } = options;
  const fetchFromHub = createHubFetch({ endpoint, repo, hasToken: token !== undefined, signal });
  const access = { hubUrl: endpoint, ...(token === undefined ? {} : { accessToken: token }) };
  const quickFetch: typeof fetch = (input, init) =>
    fetchFromHub(input, { ...init, signal: AbortSignal.timeout(stallMs) });

  /** One question, asked until it is answered. */
  const ask = <Answer>(question: () => Promise<Answer>): Promise<Answer> =>
    retrying(async () => {
      try {
        return await question();
      } catch (error) {
        signal.throwIfAborted();
        // An answer that breaks off in the middle, or is no JSON, which a proxy's page of errors is not either.
        throw error instanceof CommandError ? error : brokenConnection('the answer cannot be read', error);
      }
    }, options);

  return {
    async resolveCommit(revision) {
      const fields = { name: repo, revision, additionalFields: ['sha' as const], fetch: quickFetch, ...access };
      const { sha } = await ask(() => modelInfo(fields));
      if (typeof sha === 'string' && /^[0-9a-f]{40}$/.test(sha)) return sha;
      throw new CommandError(`${endpoint} does not say which commit ${revision} of ${repo} is.`);
    },
    listFiles: (commit) =>
      ask(async () => {
        const files: HubFile[] = [];
        const entries = listFiles({ repo, recursive: true, revision: commit, fetch: quickFetch, ...access });
        for await (const entry of entries) {
          if (entry.type !== 'file') continue;
          assertInside(repo, entry.path);
          files.push(hubFileOf(entry));
        }
        return files;
      }),
    read: ({ path, size, checksum }, commit, start) => {
      const encoded = path.split('/').map(encodeURIComponent).join('/');
      const url = `${endpoint}/${repo}/resolve/${commit}/${encoded}`;
      const downloadInfo = { url, size, etag: checksum.digest };
      const open = async (fetch: typeof globalThis.fetch) =>
        (await downloadFile({ repo, path, revision: commit, xet: false, fetch, downloadInfo, ...access }))!;
      return readBlob(open, { fetch: fetchFromHub, start, stallMs, signal });
    },
  };
}

function hubFileOf({ path, size, oid = '', lfs }: ListFileEntry): HubFile {
  if (lfs === undefined) return { path, size, checksum: { kind: 'git-blob', digest: oid } };
  return { path, size: lfs.size, checksum: { kind: 'sha256', digest: lfs.oid } };
}

interface ReadBlobOptions {
  fetch: typeof fetch;
  start: number;
  stallMs: number;
  signal: AbortSignal;
}

/** Reads what the library opens, and says why it broke: the library keeps only the words of what its fetch throws. */
async function* readBlob(
  open: (fetch: typeof globalThis.fetch) => Promise<Blob>,
  { fetch, start, stallMs, signal }: ReadBlobOptions,
): AsyncGenerator<Uint8Array> {
  let failure: unknown;
  const stalled = new AbortController();
  const watch = (): NodeJS.Timeout => setTimeout(() => stalled.abort(), stallMs);
  let timer = watch();
  try {
    const blob = await open(async (input, init) => {
      try {
        const response = await fetch(input, { ...init, signal: stalled.signal });
        if (start === 0 || response.status === 206) return response;
        await response.body?.cancel();
        throw new RangeIgnoredError();
      } catch (error) {
        failure = error;
        throw error;
      }
    });
    const stream = (start === 0 ? blob : blob.slice(start)).stream() as AsyncIterable<Uint8Array> & ReadableStream;
    for await (const chunk of stream) {
      clearTimeout(timer);
      yield chunk;
      timer = watch();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (stalled.signal.aborted) throw new BrokenConnectionError(`nothing came for ${stallMs / 1000} s`);
    throw failure ?? brokenConnection('the connection broke', error);
  } finally {
    clearTimeout(timer);
  }
}

/** A repository's names become paths here, whose author may be anybody. */
function assertInside(repo: string, path: string): void {
  const parts = path.split('/');
  const isInside = parts.every((part) => !['', '.', '..'].includes(part)) && !/[\\:\0]/u.test(path);
  if (!isInside) throw new CommandError(`${repo} has a file that must not be written: ${JSON.stringify(path)}`);
}
