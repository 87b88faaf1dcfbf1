/**
 * Where the nodes of a graph ran, from ONNX Runtime's profile of its first calls: the only place that it says so. The
 * profile is a file without a name as soon as it is open, so that it goes with the process, however that ends. It is for
 * the operator to know, so a model is loaded without it where it cannot be had.
 */
import { closeSync, fstatSync, mkdtempSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeCounts } from '@darkroom/core';

/** As the profile calls devices. */
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

/** Makes the counter of one session; undefined where there is no folder for temporary files that can be written to. */
export function createNodeCounter() {
  const directory = attempt(() => mkdtempSync(join(tmpdir(), 'darkroom-profile-')));
  if (directory === undefined) return undefined;
  let file: number | undefined;
  /** Deletes what there is of the profile. */
  const drop = (): void => {
    rmSync(directory, { recursive: true, force: true });
    if (file !== undefined) closeSync(file);
    file = undefined;
  };
  return {
    /** For the session whose nodes are counted. */
    sessionOptions: { enableProfiling: true, profileFilePrefix: join(directory, 'profile') },
    /** To be called once the session is there, which has its profile open. */
    open(): void {
      file = attempt(() => openSync(join(directory, readdirSync(directory)[0] ?? ''), 'r'));
      rmSync(directory, { recursive: true, force: true });
    },
    /** To be called when the session has written its profile; undefined if that is not whole. */
    read(): NodeCounts | undefined {
      const counts = file === undefined ? undefined : attempt(() => countNodes(readWhole(file!)));
      drop();
      return counts;
    },
    drop,
  };
}

/** undefined if the file system does not let it, or the profile is cut short because the disk was full. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof Error && 'syscall' in error)) return undefined;
    throw error;
  }
}

function readWhole(file: number): string {
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
