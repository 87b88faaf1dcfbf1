/**
 * A model repository on the Hugging Face hub. Lists files with the hub's own library, but downloads them by HTTP ranges
 * instead of its Xet protocol, so that mirrors and proxies work and interrupted downloads can resume.
 */
import { withTimeLimit } from '@darkroom/core';
import { type ListFileEntry, listFiles, modelInfo } from '@huggingface/hub';
import { CommandError } from '../command/command-error.ts';
import { brokenConnection, BrokenConnectionError } from './broken-connection-error.ts';
import { fetchFromHub, type HubAccess } from './hub-fetch.ts';
import { withRetries } from './retrying.ts';

export interface HubFile {
  /** Path in the repository, with `/`. */
  readonly path: string;
  readonly size: number;
  /** Checksum known to the hub, hexadecimal: SHA-256 for large files, the git blob hash for small ones. */
  readonly checksum: { readonly kind: 'sha256' | 'git-blob'; readonly digest: string };
}

export interface HubCommit extends HubAccess {
  commit: string;
}

/** The server ignores the Range header and sends the whole file. */
export class RangeIgnoredError extends BrokenConnectionError {}

const defaultStallMs = 60_000;

/** Resolves a branch, tag or commit to its current commit. */
export async function resolveCommit(access: HubAccess, revision: string): Promise<string> {
  const { endpoint, repo } = access;
  const { sha } = await query(access, (requestOptions) =>
    modelInfo({ name: repo, revision, additionalFields: ['sha'], ...requestOptions }),
  );
  if (typeof sha === 'string' && /^[0-9a-f]{40}$/.test(sha)) return sha;
  throw new CommandError(`${endpoint} does not report which commit ${revision} of ${repo} is.`);
}

/** Lists all files of a commit. @throws CommandError if a path leads out of the directory. */
export function listHubFiles(hub: HubCommit): Promise<HubFile[]> {
  return query(hub, async (requestOptions) => {
    const files: HubFile[] = [];
    for await (const entry of listFiles({ repo: hub.repo, recursive: true, revision: hub.commit, ...requestOptions })) {
      if (entry.type !== 'file') continue;
      assertInside(hub.repo, entry.path);
      files.push(hubFileOf(entry));
    }
    return files;
  });
}

/** Makes a request through the hub's library, with retries. */
function query<Answer>(
  access: HubAccess,
  question: (requestOptions: HubRequestOptions) => Promise<Answer>,
): Promise<Answer> {
  const { endpoint: hubUrl, token, signal, stallMs = defaultStallMs } = access;
  const requestOptions: HubRequestOptions = {
    hubUrl,
    fetch: (input, init) =>
      withTimeLimit(stallMs, signal, async (both) => {
        const answer = await fetchFromHub(access, input, { ...init, signal: both });
        // The time limit includes the body.
        return new Response(await answer.arrayBuffer(), answer);
      }),
    ...(token === undefined ? {} : { accessToken: token }),
  };
  return withRetries(async () => {
    try {
      return await question(requestOptions);
    } catch (error) {
      signal.throwIfAborted();
      // A response cut short, or not JSON, such as a proxy's error page.
      throw error instanceof CommandError ? error : brokenConnection('the answer cannot be read', error);
    }
  }, access);
}

type HubRequestOptions = Pick<Parameters<typeof modelInfo>[0], 'hubUrl' | 'fetch' | 'accessToken'>;

/**
 * Streams the bytes of a file from an offset.
 *
 * @throws BrokenConnectionError if the connection breaks midway; RangeIgnoredError at once.
 */
export async function* readHubFile(hub: HubCommit, { path, size }: HubFile, start: number): AsyncGenerator<Uint8Array> {
  const { endpoint, repo, commit, token, signal, stallMs = defaultStallMs } = hub;
  const url = `${endpoint}/${repo}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;
  const headers = new Headers(token === undefined ? {} : { authorization: `Bearer ${token}` });
  if (start > 0) headers.set('range', `bytes=${start}-${size - 1}`);
  const stalled = new AbortController();
  const watch = (): NodeJS.Timeout => setTimeout(() => stalled.abort(), stallMs);
  let timer = watch();
  try {
    const response = await fetchFromHub(hub, url, { headers, signal: stalled.signal });
    if (start > 0 && response.status !== 206) {
      await response.body?.cancel();
      throw new RangeIgnoredError(`the server cannot continue ${path}, which starts again`);
    }
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      clearTimeout(timer);
      yield chunk;
      timer = watch();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (stalled.signal.aborted) throw new BrokenConnectionError(`nothing came for ${stallMs / 1000} s`);
    throw error instanceof CommandError ? error : brokenConnection('the connection broke', error);
  } finally {
    clearTimeout(timer);
  }
}

function hubFileOf({ path, size, oid = '', lfs }: ListFileEntry): HubFile {
  if (lfs === undefined) return { path, size, checksum: { kind: 'git-blob', digest: oid } };
  return { path, size: lfs.size, checksum: { kind: 'sha256', digest: lfs.oid } };
}

/** Refuses paths outside of the model's directory: repositories are untrusted. */
function assertInside(repo: string, path: string): void {
  const parts = path.split('/');
  const isInside = parts.every((part) => !['', '.', '..'].includes(part)) && !/[\\:\0]/u.test(path);
  if (!isInside) throw new CommandError(`${repo} has a file that must not be written: ${JSON.stringify(path)}`);
}
