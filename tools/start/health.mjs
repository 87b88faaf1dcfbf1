import { setTimeout as delay } from 'node:timers/promises';

/** Resolves once the API is up and a worker has loaded its model; rejects when the signal aborts. */
export async function untilHealthy(url, signal) {
  for (;;) {
    if (await isHealthy(url, signal)) return;
    await delay(200, undefined, { signal });
  }
}

async function isHealthy(url, signal) {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.any([signal, AbortSignal.timeout(5000)]) });
    const body = await response.json();
    return response.status === 200 && body.model_loaded === true;
  } catch {
    // Not up yet.
    return false;
  }
}
