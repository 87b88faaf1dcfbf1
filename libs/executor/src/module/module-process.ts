/**
 * The entry of a module's process. It loads the module in place of an engine of ours, and hands on what it is asked and what it says:
 * what that is worth is for the parent to judge, since here the module could change whatever it wants.
 */
import { obeyParent } from '../process/parent-channel.ts';
import type { MessageFromModule, MessageToModule } from './module-message.ts';
import { messageOf, ModuleCalls, pack } from './module-calls.ts';
import type { CreateExecutor, OwnExecutor } from './own-executor.ts';

/** Of a card. */
const mostCardBytes = 65_536;

const sendToParent = process.send!.bind(process);
// The channel is not the module's.
delete process.send;

let executor: OwnExecutor | undefined;
let calls: ModuleCalls | undefined;

/** Resolves when the kernel has it. */
function send(message: MessageFromModule): Promise<void> {
  return new Promise((resolve) => void sendToParent(message, undefined, undefined, () => resolve()));
}

/** Says why it cannot start, and ends. */
async function giveUp(message: string, error?: unknown): Promise<never> {
  await send({ type: 'unfit', message, thrown: error === undefined ? '' : messageOf(error) });
  process.exit(1);
}

async function load(specifier: string): Promise<Partial<{ createExecutor: CreateExecutor }>> {
  try {
    return (await import(specifier)) as Partial<{ createExecutor: CreateExecutor }>;
  } catch (error) {
    return giveUp('it could not be loaded', error);
  }
}

async function create(createExecutor: CreateExecutor, model: string): Promise<OwnExecutor> {
  try {
    return await createExecutor({ model });
  } catch (error) {
    return giveUp('createExecutor threw', error);
  }
}

async function start({ specifier, model }: Extract<MessageToModule, { type: 'start' }>): Promise<void> {
  const { createExecutor } = await load(specifier);
  if (typeof createExecutor !== 'function') return giveUp('expected a module that exports a function createExecutor');
  executor = await create(createExecutor, model);
  const run: unknown = (executor as OwnExecutor | undefined)?.run;
  if (typeof run !== 'function') return giveUp('createExecutor gave no function run, expected { card, slots, run }');
  calls = new ModuleCalls(executor, (message) => void send(message));
  try {
    const { card, slots } = executor;
    await send({ type: 'ready', card: pack(card, mostCardBytes), slots: pack(slots, mostCardBytes) });
  } catch (error) {
    await giveUp('createExecutor gave no card that could be read', error);
  }
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
      await executor?.close?.();
      process.exit(0);
  }
}

obeyParent();
// A rejection that nobody caught comes here too. The module may be in any state, so it ends.
process.on('uncaughtException', (error: unknown) => {
  sendToParent({ type: 'dying', message: messageOf(error) }, undefined, undefined, () => process.exit(1));
});
process.on('message', (message: MessageToModule) => void receive(message));
