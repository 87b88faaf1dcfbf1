import { words } from './words.mjs';

export const createExecutor = () => ({
  card: { kind: 'text' },
  slots: 4,
  run: ({ input }, signal) => words(input.maxTokens, signal),
});
