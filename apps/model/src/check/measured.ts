import { sendToParent } from '@darkroom/core';

/** Duration of a part of the check, and the process's memory and peak memory after it. */
export interface CheckMeasurement {
  readonly ms: number;
  readonly bytes: number;
  readonly peakBytes: number;
}

/** Runs a part of the check and sends its measurement to the parent process, under the part's name. */
export async function measured<Result>(part: string, work: () => Promise<Result>): Promise<Result> {
  const startedAtMs = performance.now();
  const result = await work();
  const ms = performance.now() - startedAtMs;
  const { rss: bytes } = process.memoryUsage();
  const measurement: CheckMeasurement = { ms, bytes, peakBytes: process.resourceUsage().maxRSS * 1024 };
  await sendToParent({ [part]: measurement });
  return result;
}
