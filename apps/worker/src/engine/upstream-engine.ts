import type { Config } from '@darkroom/config';
import { createLlamaCpp, createOpenai, UpstreamExecutor } from '@darkroom/executor';
import { asTheyAre, withRecipes } from '../request/output-encoder.ts';
import type { LoadWatch } from './load-watch.ts';
import type { WorkerEngine } from './worker-engine.ts';

const protocols = { 'llama.cpp': createLlamaCpp, openai: createOpenai };

/** Another server runs the model. What it is, and how many requests it takes, is known when it answers. */
export function upstreamEngine(config: Config<'worker'>, loads: LoadWatch): WorkerEngine {
  const { modelId: model, upstreamUrl: url = '', upstreamApi, upstreamKey: key, upstreamSlots: maxSlots } = config;
  const patienceMs = config.engineTimeoutS * 1000;
  return {
    card: { id: model },
    capacity: 1,
    encoder: withRecipes(asTheyAre, model),
    device: url,
    createExecutor: (onEvents) =>
      new UpstreamExecutor({
        // As its clients are given it: with the `/v1` that its paths have anyway.
        url: url.replace(/\/v1\/?$/, ''),
        key,
        createProtocol: protocols[upstreamApi],
        model,
        maxSlots,
        patienceMs,
        onEvents,
        onWaiting: (reason) => loads.waitsFor(reason),
      }),
  };
}
