import { send } from '../serve-request.ts';

/** How long a part of the work took, the memory that the process has after it, and the most that it has had so far. */
export interface CheckMeasurement {
  readonly ms: number;
  readonly bytes: number;
  readonly peakBytes: number;
}

/** Does a part of the work, and sends what it took to the process that asked for it, by the part's name. */
export async function measured<Result>(part: string, work: () => Promise<Result>): Promise<Result> {
  const startedAtMs = performance.now();
  const result = await work();
  const ms = performance.now() - startedAtMs;
  const { rss: bytes } = process.memoryUsage();
  const measurement: CheckMeasurement = { ms, bytes, peakBytes: process.resourceUsage().maxRSS * 1024 };
  await send({ [part]: measurement });
  return result;
}
