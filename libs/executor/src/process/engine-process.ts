/**
 * The entry of an engine's process: one model on one device, told what to do by the process that forked it. It holds no
 * lease, no lock and no connection, so it may block for a whole step, and be killed at any time.
 */
import { DarkroomError, type Pipeline, type PipelineRow } from '@darkroom/core';
import type { EngineProcessOptions, MessageFromEngine, MessageToEngine } from './engine-message.ts';
import { Engine } from '../engine/engine.ts';
import { loadModel } from '../engine/load-model.ts';
import { EventOutbox } from './event-outbox.ts';
import { obeyParent } from './parent-channel.ts';

let engine: Engine<PipelineRow> | undefined;
let pipeline: Pipeline<PipelineRow> | undefined;
const outbox = new EventOutbox({ send: (events) => send({ type: 'events', events }) });

/** Resolves when the kernel has the message: an engine that outruns its parent waits instead of piling up. */
function send(message: MessageFromEngine): Promise<void> {
  return new Promise((resolve) => {
    // An error here means that the parent is gone; `disconnect` ends this process.
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

async function start({ model, ...options }: EngineProcessOptions): Promise<void> {
  try {
    pipeline = await loadModel(model);
    engine = new Engine({ ...options, pipeline, onEvents: (events) => outbox.push(events) });
    await send({ type: 'ready', card: pipeline.card, components: pipeline.components });
  } catch (error) {
    const code = DarkroomError.isInstance(error) ? error.code : 'internal';
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const detail = cause instanceof Error ? new Error(cause.message) : undefined;
    await send({ type: 'start-failed', failure: [code, 'executor.start', message, detail] });
    process.exit(1);
  }
}

async function receive(message: MessageToEngine): Promise<void> {
  switch (message.type) {
    case 'start':
      return start(message.options);
    case 'submit':
      return engine?.submit(message.requests);
    case 'cancel':
      return engine?.cancel(message.requestId);
    case 'health':
      return send({ type: 'health', status: engine!.status });
    case 'shutdown':
      await engine?.stop(message);
      await outbox.flush();
      await pipeline?.dispose();
      process.exit(0);
  }
}

obeyParent();
// A rejection is a defect of ours: it ends the process, and the parent sees `engine-lost`.
process.on('message', (message: MessageToEngine) => void receive(message));
