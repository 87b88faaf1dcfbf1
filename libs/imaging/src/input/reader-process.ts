/**
 * Entry point of the process that decodes clients' image files, one at a time. It has limits on memory and CPU time, so
 * that a hostile file ends this process and not the API.
 */
import { setPriority } from 'node:os';
import { fitImage, readImage, type SourceImage } from './fit-image.ts';
import { cpuLimitExitCode, type MessageFromReader, type MessageToReader } from './reader-message.ts';

const checkEveryMs = 50;
/** Nice value: requests to the API have priority over image decoding. */
const priority = 10;

let source: SourceImage | undefined;
/** Total CPU time that the process may have used when the file is done, ms. */
let cpuDeadlineMs = Infinity;

/** Receives a file into a buffer of exactly its length. */
function receive(length: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(length);
  let received = 0;
  return new Promise((resolve) => {
    const take = (chunk: Buffer): void => {
      received += chunk.copy(bytes, received);
      if (received < length) return;
      process.stdin.off('data', take).pause();
      resolve(bytes);
    };
    if (length === 0) resolve(bytes);
    else process.stdin.on('data', take).resume();
  });
}

async function answer(message: MessageToReader): Promise<MessageFromReader | undefined> {
  switch (message.type) {
    case 'open': {
      const result = await readImage(await receive(message.length), message);
      if (result.status === 'refused') return result;
      source = result;
      return { status: 'read', width: result.width, height: result.height };
    }
    case 'fit': {
      const opened = source!;
      source = undefined;
      return fitImage(opened, message);
    }
    case 'drop':
      source = undefined;
      return undefined;
  }
}

async function handle(message: MessageToReader): Promise<void> {
  if (message.type === 'open') cpuDeadlineMs = usedCpuMs() + message.maxCpuMs;
  const timer = setInterval(checkCpuTime, checkEveryMs);
  try {
    const result = await answer(message);
    checkCpuTime();
    if (result !== undefined) process.send!(result);
  } catch (error) {
    process.send!({ status: 'failed', message: String(error) } satisfies MessageFromReader);
  } finally {
    clearInterval(timer);
  }
}

function checkCpuTime(): void {
  if (usedCpuMs() > cpuDeadlineMs) process.exit(cpuLimitExitCode);
}

function usedCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

setPriority(priority);
// Ignore signals: Ctrl-C reaches the complete process group. The API exits after its last response, and this process
// with it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('disconnect', () => process.exit(0));
process.on('message', (message: MessageToReader) => void handle(message));
process.send!({ status: 'started' } satisfies MessageFromReader);
