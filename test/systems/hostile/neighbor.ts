/** A well-behaved client that runs during an attack; see `neighbor-process.mjs`. */
import { fork } from 'node:child_process';
import { once } from 'node:events';

export interface NeighborReport {
  /** p99 latency of /health on the API under attack, ms. */
  healthP99Ms: number;
  /** p99 latency of /health on an API that is not under attack: the share of the machine itself, ms. */
  controlP99Ms: number;
  /** Outcome of each request that the neighbor sent: `ok` or the error. */
  outcomes: string[];
}

export interface NeighborOptions {
  url: string;
  controlUrl: string;
  headers: Record<string, string>;
}

/** Runs the neighbor during `attack`, and longer if needed for enough polls and one request of each kind. */
export async function watchBeside(options: NeighborOptions, attack: () => Promise<void>): Promise<NeighborReport> {
  const child = fork(new URL('neighbor-process.mjs', import.meta.url).pathname, { execArgv: [] });
  try {
    child.send(options);
    await once(child, 'message');
    await attack();
    child.send('stop');
    const [report] = (await once(child, 'message')) as [NeighborReport];
    return report;
  } finally {
    child.kill();
  }
}
