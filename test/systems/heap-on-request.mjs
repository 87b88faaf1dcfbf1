// Preloaded into a process of the system: answers each IPC message with the memory usage after a garbage collection.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
async function answer() {
  // Finalizers of collected objects run on later ticks and may free more.
  for (let turn = 0; turn < 5; turn++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.send(process.memoryUsage());
}

process.on('message', () => void answer());
// The IPC channel must not keep the process alive.
process.channel.unref();
