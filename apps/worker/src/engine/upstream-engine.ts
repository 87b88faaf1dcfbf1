import type { Config } from '@darkroom/config';
import { createComfyui, createLlamaCpp, createOpenai, createSdcpp, UpstreamExecutor } from '@darkroom/executor';
import type { LoadWatch } from './load-watch.ts';
import type { WorkerEngine } from './worker-engine.ts';

const protocols = {
  comfyui: ({ upstreamWorkflow: workflow = '' }: Config<'worker'>) => createComfyui({ workflow }),
  'llama.cpp': () => createLlamaCpp,
  openai: () => createOpenai,
  sdcpp: () => createSdcpp,
};

/** Forwards requests to another server. Its card and capacity are known when the server answers. */
export function upstreamEngine(config: Config<'worker'>, loads: LoadWatch): WorkerEngine {
  const { modelId: model, upstreamUrl: url = '', upstreamApi, upstreamKey: key, upstreamSlots: maxSlots } = config;
  const timeoutMs = config.engineTimeoutS * 1000;
  const createProtocol = protocols[upstreamApi](config);
  return {
    card: { id: model },
    capacity: 1,
    device: url,
    createExecutor: (onEvents) =>
      new UpstreamExecutor({
        // OpenAI clients are configured with a URL that ends in `/v1`; the paths here contain it already.
        url: url.replace(/\/v1\/?$/, ''),
        key,
        createProtocol,
        model,
        maxSlots,
        timeoutMs,
        onEvents,
        onWaiting: (reason) => loads.reportWaiting(reason),
      }),
  };
}
