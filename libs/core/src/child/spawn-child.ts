import { type ChildProcess, spawn, spawnSync } from 'node:child_process';

export interface SpawnOptions {
  /** The built program: Node runs no TypeScript. */
  entry: string;
  /** Program that runs `entry` and exchanges frames on descriptor 3. Default: Node, with its own channel. */
  interpreter?: string | undefined;
  /** Default: this process's own. */
  environment?: NodeJS.ProcessEnv | undefined;
  /** Flags of Node. Those of this process, such as a debugger port, are not inherited. */
  nodeFlags?: readonly string[];
  /**
   * Max bytes of data, on Linux. Such a child gets no NODE_OPTIONS either, and is the first that the kernel ends if the
   * container runs out of memory.
   */
  maxDataBytes?: number | undefined;
  /** Opens the child's stdin, for bytes after a message. */
  hasStdin?: boolean;
  /** Default: inherited by the child. `tail`: the end of it is part of how the child ended. */
  stderr?: 'inherit' | 'tail';
  stdout?: 'inherit' | 'ignore';
  /**
   * Stops on its own when this process is gone, and gets no Ctrl-C. Any other child is killed by Linux with this
   * process, if setpriv is present: a child stuck in a device call would not notice the closed channel.
   */
  outlivesParent?: boolean;
}

/** Part of util-linux 2.33 or later, which every Debian has. */
const setpriv = ['/usr/bin/setpriv', '--pdeathsig', 'KILL'] as const;
let hasSetpriv: boolean | undefined;

/** Starts a program with a channel for messages: structured clones to a Node program, frames to any other. */
export function spawnChild(options: SpawnOptions): ChildProcess {
  const { entry, interpreter = process.execPath, environment, nodeFlags = [], outlivesParent = false } = options;
  const words = [...limitMemory(options), ...killWithParent(options), interpreter, ...nodeFlags, entry];
  return spawn(words[0]!, words.slice(1), {
    ...(environment && { env: environment }),
    // Another program has a process group, which ends with it.
    detached: outlivesParent || options.interpreter !== undefined,
    serialization: 'advanced',
    stdio: [
      options.hasStdin === true ? 'pipe' : 'inherit',
      options.stdout ?? 'inherit',
      options.stderr === 'tail' ? 'pipe' : 'inherit',
      options.interpreter === undefined ? 'ipc' : 'pipe',
    ],
  });
}

function killWithParent({ outlivesParent = false }: SpawnOptions): readonly string[] {
  if (outlivesParent) return [];
  hasSetpriv ??= spawnSync(setpriv[0], [...setpriv.slice(1), '/bin/true']).status === 0;
  return hasSetpriv ? setpriv : [];
}

/** RLIMIT_DATA: a limit on the address space does not work with V8, which reserves far more than it uses. */
function limitMemory({ maxDataBytes }: SpawnOptions): readonly string[] {
  if (maxDataBytes === undefined || process.platform !== 'linux') return [];
  const dataLimitKib = Math.ceil(maxDataBytes / 1024);
  const raiseOomScore = 'echo 1000 2>/dev/null >/proc/self/oom_score_adj';
  return ['/bin/sh', '-c', `unset NODE_OPTIONS; ulimit -d ${dataLimitKib}; ${raiseOomScore}; exec "$0" "$@"`];
}
