/**
 * Entry point of an engine process: one model on one device, controlled by the process that forked it. It holds no
 * lease, lock or connection, so it may block for a whole step or be killed at any time.
 */
import { DarkroomError, obeyParent, type Pipeline, type PipelineRow, sendToParent } from '@darkroom/core';
import type { EngineProcessOptions, MessageFromEngine, MessageToEngine } from './engine-message.ts';
import { Engine } from '../engine/engine.ts';
import { engineKinds } from '../kinds/engine-kinds.ts';
import { EventOutbox } from './event-outbox.ts';

let engine: Engine<PipelineRow> | undefined;
let pipeline: Pipeline<PipelineRow> | undefined;
const outbox = new EventOutbox({ send: (events) => send({ type: 'events', events }) });

/** The engine awaits it, so it cannot outrun its parent. */
function send(message: MessageFromEngine): Promise<void> {
  return sendToParent(message);
}

async function start({ model, ...options }: EngineProcessOptions): Promise<void> {
  try {
    pipeline = await (await engineKinds.detect(model.directory)).load(model);
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

// A rejection is a bug. It ends the process, and the parent emits `engine-lost`.
obeyParent(receive);
