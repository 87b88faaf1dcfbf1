// A moderation module whose verdict depends on the words of the prompt.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { serialize } from 'node:v8';

const yes = { allowed: true };
const never = new Promise(() => {});

const ways = {
  forbidden: () => ({ allowed: false, reason: 'that is not allowed here' }),
  throws: () => {
    throw new Error('out of order');
  },
  nothing: () => undefined,
  'no reason': () => ({ allowed: false }),
  truthy: () => 1,
  hangs: () => never,
  'ends on abort': (signal) => once(signal, 'abort').then(() => yes),
  blocks: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  dies: () => process.exit(3),
  rejects: () => {
    void Promise.reject(new Error('an unhandled rejection'));
    return never;
  },
};

export async function createJudge({ model }) {
  if (model === 'late') await delay(1500);
  // Bypasses the removal of `process.send`.
  if (model === 'garbled') process['_send']({ type: 'ready', info: new Uint8Array(1) });
  if (model === 'empty') process['_send']({ type: 'ready', info: serialize({}) });
  if (model === 'unfit') throw new Error('has no weights');
  return {
    judgePrompt: ({ prompt }, signal) => (prompt in ways ? ways[prompt](signal) : yes),
    judgeImage: ({ prompt, index, width, height, data, contentType }) => {
      const [when, what, which] = prompt.split(': ');
      if (what === 'shape' || prompt === 'file')
        return { allowed: false, reason: `${width}x${height} ${contentType ?? 'pixels'} ${data.length}` };
      if (when !== 'image' || (which !== undefined && Number(which) !== index)) return yes;
      return what in ways ? ways[what]() : yes;
    },
  };
}
