/**
 * Entry point of a module's process: loads the module, passes calls to it and sends back its values. The parent
 * validates everything, since the module could change anything in this process.
 */
import { obeyParent, sendToParent } from '@darkroom/core';
import type { MessageFromModule, MessageToModule } from '../module-message.ts';
import { loadModule, type LoadedModule, UnfitModule } from './load-module.ts';
import { messageOf, ModuleCalls, pack } from './module-calls.ts';

/** Max serialized size of a model card. */
const maxInfoBytes = 65_536;

let loaded: LoadedModule | undefined;
let calls: ModuleCalls | undefined;

function send(message: MessageFromModule): Promise<void> {
  return sendToParent(message);
}

async function start(message: Extract<MessageToModule, { type: 'start' }>): Promise<void> {
  try {
    loaded = await loadModule(message);
    calls = new ModuleCalls(loaded.run, (sent) => void send(sent));
    await send({ type: 'ready', info: pack(loaded.info, maxInfoBytes) });
  } catch (error) {
    const isUnfit = error instanceof UnfitModule;
    const why = isUnfit ? error.message : `${message.exportName} returned a card that cannot be read`;
    const thrown = isUnfit ? error.cause : error;
    await send({ type: 'unfit', message: why, thrown: thrown === undefined ? '' : messageOf(thrown) });
    process.exit(1);
  }
}

/** The module may be in any state, so exit. */
async function die(error: unknown): Promise<void> {
  await send({ type: 'dying', message: messageOf(error) });
  process.exit(1);
}

async function receive(message: MessageToModule): Promise<void> {
  switch (message.type) {
    case 'start':
      return start(message);
    case 'run':
      return calls?.run(message);
    case 'taken':
      return calls?.taken(message.call);
    case 'abort':
      return calls?.abort(message.call);
    case 'ping':
      return send({ type: 'pong' });
    case 'close':
      await loaded?.close?.();
      process.exit(0);
  }
}

// Also receives unhandled rejections.
process.on('uncaughtException', (error: unknown) => void die(error));
obeyParent(receive);
