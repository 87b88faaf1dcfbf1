/** Memory usage of a process of the system that was started with `heapEnvironment`. */
import type { Part } from '@darkroom/testing';

export const heapEnvironment: Record<string, string> = {
  NODE_OPTIONS: `--import ${new URL('heap-on-request.mjs', import.meta.url).pathname}`,
};

/** Returns the memory usage of the process after a garbage collection. */
export async function memoryOf({ process: child }: Part): Promise<NodeJS.MemoryUsage> {
  const answer = new Promise<NodeJS.MemoryUsage>((resolve) => child.once('message', resolve));
  child.send('memory');
  return answer;
}
