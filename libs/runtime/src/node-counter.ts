/**
 * Where the nodes of a graph ran, from ONNX Runtime's profile of its first calls: the only place that it says so. The
 * profile is a file, in a directory of its own that goes once it has been read.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Nodes by where they ran, such as `{ webgpu: 239, cpu: 21 }`. */
export type NodeCounts = Readonly<Record<string, number>>;

export interface NodeCounter {
  /** For the session whose nodes are counted. */
  readonly sessionOptions: { readonly enableProfiling: true; readonly profileFilePrefix: string };
  /** Of each node the first run, when the session has written its profile. */
  read(): Promise<NodeCounts>;
  /** Deletes what there is of the profile. */
  drop(): void;
}

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

/** Makes the counter of one session. */
export function createNodeCounter(): NodeCounter {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-profile-'));
  const drop = (): void => rmSync(directory, { recursive: true, force: true });
  return {
    sessionOptions: { enableProfiling: true, profileFilePrefix: join(directory, 'profile') },
    drop,
    async read() {
      const nodes = new Map<string, string>();
      for (const file of readdirSync(directory)) {
        const events = JSON.parse(await readFile(join(directory, file), 'utf8')) as ProfileEvent[];
        for (const { cat, args: { provider, node_index: node } = {} } of events) {
          if (cat === 'Node' && provider !== undefined && node !== undefined) nodes.set(node, provider);
        }
      }
      drop();
      const counts: Record<string, number> = {};
      for (const provider of nodes.values()) {
        const device = providers[provider] ?? provider;
        counts[device] = (counts[device] ?? 0) + 1;
      }
      return counts;
    },
  };
}
