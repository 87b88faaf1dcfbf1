/**
 * Counts the nodes that ran on each device, from ONNX Runtime's profile of the first calls, its only source. The
 * profile file is unlinked once open, so it disappears with the process. Counts are informational: a model loads
 * without them too.
 */
import { closeSync, fstatSync, mkdtempSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeCounts } from '@darkroom/core';

/** Maps provider names in the profile to devices. */
const providers: Readonly<Record<string, string>> = {
  CPUExecutionProvider: 'cpu',
  CUDAExecutionProvider: 'cuda',
  WebGpuExecutionProvider: 'webgpu',
};

interface ProfileEvent {
  readonly cat?: string;
  readonly args?: { readonly provider?: string; readonly node_index?: string };
}

export type NodeCounter = NonNullable<ReturnType<typeof createNodeCounter>>;

/** Creates the counter of one session; undefined if no temporary folder is writable. */
export function createNodeCounter() {
  const directory = attempt(() => mkdtempSync(join(tmpdir(), 'darkroom-profile-')));
  if (directory === undefined) return undefined;
  let file: number | undefined;
  /** Deletes the profile. */
  const drop = (): void => {
    rmSync(directory, { recursive: true, force: true });
    if (file !== undefined) closeSync(file);
    file = undefined;
  };
  return {
    /** Options of the session whose nodes are counted. */
    sessionOptions: { enableProfiling: true, profileFilePrefix: join(directory, 'profile') },
    /** Call after the session is created: it has opened its profile by then. */
    open(): void {
      file = attempt(() => openSync(join(directory, readdirSync(directory)[0] ?? ''), 'r'));
      rmSync(directory, { recursive: true, force: true });
    },
    /** Call after the session has written its profile. Returns undefined if the profile is incomplete. */
    read(): NodeCounts | undefined {
      const opened = file;
      const counts = opened === undefined ? undefined : attempt(() => countNodes(readAll(opened)));
      drop();
      return counts;
    },
    drop,
  };
}

/** Returns undefined on file system errors, and on a profile truncated by a full disk. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof Error && 'syscall' in error)) return undefined;
    throw error;
  }
}

function readAll(file: number): string {
  const bytes = Buffer.alloc(fstatSync(file).size);
  return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0)).toString();
}

function countNodes(profile: string): NodeCounts {
  const nodes = new Map<string, string>();
  for (const { cat, args: { provider, node_index: node } = {} } of JSON.parse(profile) as ProfileEvent[]) {
    if (cat === 'Node' && provider !== undefined && node !== undefined) nodes.set(node, provider);
  }
  const counts: Record<string, number> = {};
  for (const provider of nodes.values()) {
    const device = providers[provider] ?? provider;
    counts[device] = (counts[device] ?? 0) + 1;
  }
  return counts;
}
