import type { TriedModel } from './tried-model.ts';

export interface CheckModelOptions {
  model: TriedModel;
  signal: AbortSignal;
  write: (text: string) => void;
}
