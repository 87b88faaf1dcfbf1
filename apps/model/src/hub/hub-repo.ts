/**
 * A model repository of the Hugging Face hub: its files through the hub's own library, their bytes by plain HTTP with
 * ranges and not by its Xet protocol, so that mirrors and proxies do and a broken download goes on where it was.
 */
import { within } from '@darkroom/core';
import { type ListFileEntry, listFiles, modelInfo } from '@huggingface/hub';
import { CommandError } from '../command-error.ts';
import { brokenConnection, BrokenConnectionError } from './broken-connection-error.ts';
import { fetchFromHub, type HubAccess } from './hub-fetch.ts';
import { retrying } from './retrying.ts';

export interface HubFile {
  /** From the top of the repository, with `/`. */
  readonly path: string;
  readonly size: number;
  /** What the hub knows its content by: large files by their SHA-256, small ones as git does. The digest is hexadecimal. */
  readonly checksum: { readonly kind: 'sha256' | 'git-blob'; readonly digest: string };
}

export interface HubCommit extends HubAccess {
  commit: string;
}

/** The server sends the whole file whatever part of it is asked for. */
export class RangeIgnoredError extends BrokenConnectionError {}

const usualStallMs = 60_000;

/** The commit that a branch, tag or commit stands for right now. */
export async function resolveCommit(access: HubAccess, revision: string): Promise<string> {
  const { endpoint, repo } = access;
  const { sha } = await ask(access, (asker) =>
    modelInfo({ name: repo, revision, additionalFields: ['sha'], ...asker }),
  );
  if (typeof sha === 'string' && /^[0-9a-f]{40}$/.test(sha)) return sha;
  throw new CommandError(`${endpoint} does not say which commit ${revision} of ${repo} is.`);
}

/** All files of a commit. @throws CommandError if a name would lie outside of a directory. */
export function listHubFiles(hub: HubCommit): Promise<HubFile[]> {
  return ask(hub, async (asker) => {
    const files: HubFile[] = [];
    for await (const entry of listFiles({ repo: hub.repo, recursive: true, revision: hub.commit, ...asker })) {
      if (entry.type !== 'file') continue;
      assertInside(hub.repo, entry.path);
      files.push(hubFileOf(entry));
    }
    return files;
  });
}

/** One question by way of the library, asked until it is answered. */
function ask<Answer>(access: HubAccess, question: (asker: Asker) => Promise<Answer>): Promise<Answer> {
  const { endpoint: hubUrl, token, signal, stallMs = usualStallMs } = access;
  const asker: Asker = {
    hubUrl,
    fetch: (input, init) =>
      within(stallMs, signal, async (both) => {
        const answer = await fetchFromHub(access, input, { ...init, signal: both });
        // Its bytes too come within the limit.
        return new Response(await answer.arrayBuffer(), answer);
      }),
    ...(token === undefined ? {} : { accessToken: token }),
  };
  return retrying(async () => {
    try {
      return await question(asker);
    } catch (error) {
      signal.throwIfAborted();
      // An answer that breaks off in the middle, or is no JSON, which a proxy's page of errors is not either.
      throw error instanceof CommandError ? error : brokenConnection('the answer cannot be read', error);
    }
  }, access);
}

type Asker = Pick<Parameters<typeof modelInfo>[0], 'hubUrl' | 'fetch' | 'accessToken'>;

/**
 * The bytes of a file from a place on.
 *
 * @throws BrokenConnectionError in the middle of it, when the connection breaks; RangeIgnoredError at once.
 */
export async function* readHubFile(hub: HubCommit, { path, size }: HubFile, start: number): AsyncGenerator<Uint8Array> {
  const { endpoint, repo, commit, token, signal, stallMs = usualStallMs } = hub;
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

/** A repository's names become paths here, whose author may be anybody. */
function assertInside(repo: string, path: string): void {
  const parts = path.split('/');
  const isInside = parts.every((part) => !['', '.', '..'].includes(part)) && !/[\\:\0]/u.test(path);
  if (!isInside) throw new CommandError(`${repo} has a file that must not be written: ${JSON.stringify(path)}`);
}
