// A module that judges by the words of the prompt, and of a picture by its first pixel too.
import { setTimeout as delay } from 'node:timers/promises';

const yes = { allowed: true };
const never = new Promise(() => {});

const ways = {
  forbidden: () => ({ allowed: false, reason: 'nobody may wish for that' }),
  throws: () => {
    throw new Error('out of order');
  },
  nothing: () => undefined,
  'no reason': () => ({ allowed: false }),
  truthy: () => 1,
  hangs: () => never,
  blocks: () => {
    for (;;) Math.random();
  },
  dies: () => process.exit(3),
  rejects: () => {
    void Promise.reject(new Error('nobody caught it'));
    return never;
  },
};

export async function createJudge({ model }) {
  if (model === 'late') await delay(2500);
  if (model === 'unfit') throw new Error('has no weights');
  return {
    judgePrompt: ({ prompt }) => (prompt in ways ? ways[prompt]() : yes),
    judgePicture: ({ prompt, index, width, height, data, contentType }) => {
      const [when, what, which] = prompt.split(': ');
      if (what === 'shape' || prompt === 'file')
        return { allowed: false, reason: `${width}x${height} ${contentType ?? 'pixels'} ${data.length}` };
      if (when !== 'picture' || (which !== undefined && Number(which) !== index)) return yes;
      return what in ways ? ways[what]() : yes;
    },
  };
}
