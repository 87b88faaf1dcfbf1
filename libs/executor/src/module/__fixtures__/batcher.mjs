// A module that writes several texts in one call. Each tells the size of its batch if its prompt is `size`.
import { setTimeout as delay } from 'node:timers/promises';

const refused = (message) => Object.assign(new Error(message), { code: 'invalid_request' });

/** @type {import('@darkroom/executor').CreateTextBatchExecutor} */
export const createExecutor = () => ({
  card: { kind: 'text' },
  slots: 4,
  async runBatch(requests, signal) {
    if (requests.some(({ input }) => input.params.prompt === 'throw')) throw new Error('the batch failed');
    if (requests.some(({ input }) => input.params.prompt === 'too few')) return [];
    if (requests.some(({ input }) => input.params.prompt === 'hang')) await new Promise(() => {});
    await delay(50, undefined, { signal });
    return requests.map(({ seed, index, input: { params } }) => {
      if (params.prompt === 'nonsense') return refused('prompt: makes no sense');
      if (params.prompt === 'size') return { text: `${requests.length}` };
      return { text: `${String(params.prompt)} ${seed}/${index}`, finishReason: 'length', promptTokens: 2 };
    });
  },
});
