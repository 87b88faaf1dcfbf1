import type { Config } from '@darkroom/config';
import { createLlamaCpp, createOpenai, UpstreamExecutor } from '@darkroom/executor';
import type { LoadWatch } from './load-watch.ts';
import type { WorkerEngine } from './worker-engine.ts';

const protocols = { 'llama.cpp': createLlamaCpp, openai: createOpenai };

/** Forwards requests to another server. Its card and capacity are known when the server answers. */
export function upstreamEngine(config: Config<'worker'>, loads: LoadWatch): WorkerEngine {
  const { modelId: model, upstreamUrl: url = '', upstreamApi, upstreamKey: key, upstreamSlots: maxSlots } = config;
  const timeoutMs = config.engineTimeoutS * 1000;
  return {
    card: { id: model },
    capacity: 1,
    device: url,
    createExecutor: (onEvents) =>
      new UpstreamExecutor({
        // OpenAI clients are configured with a URL that ends in `/v1`; the paths here contain it already.
        url: url.replace(/\/v1\/?$/, ''),
        key,
        createProtocol: protocols[upstreamApi],
        model,
        maxSlots,
        timeoutMs,
        onEvents,
        onWaiting: (reason) => loads.reportWaiting(reason),
      }),
  };
}
