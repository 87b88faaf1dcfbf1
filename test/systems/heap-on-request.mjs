// Imported by a process of the system beside its own program: says over IPC what memory it holds after a garbage collection.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
async function answer() {
  // What a collection lets go of may hold more until the next turn.
  for (let turn = 0; turn < 5; turn++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.send(process.memoryUsage());
}

process.on('message', () => void answer());
// It is to end as it does without us.
process.channel.unref();
