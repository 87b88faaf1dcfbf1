import { setTimeout as delay } from 'node:timers/promises';

/** Resolves once the API is up and so many workers have loaded their models, or could not; rejects when the signal aborts. */
export async function untilHealthy(url, workers, signal) {
  for (;;) {
    if (await isHealthy(url, workers, signal)) return;
    await delay(200, undefined, { signal });
  }
}

async function isHealthy(url, workers, signal) {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.any([signal, AbortSignal.timeout(5000)]) });
    const body = await response.json();
    const { model_loaded: isLoaded, active_workers: active = 0, failed_to_load: failed = [] } = body;
    return response.status === 200 && isLoaded === true && active + failed.length >= workers;
  } catch {
    // Not up yet.
    return false;
  }
}
