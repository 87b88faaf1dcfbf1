import type { Model } from '@darkroom/client';
import { errorWords } from './error-words.ts';
import type { Session } from './session.ts';

const lookAgainMs = 3000;

export interface ModelListOptions {
  session: Session;
  onModels: (models: readonly Model[]) => void;
  onProblem: (words: string) => void;
}

export interface ModelList {
  /** Asks the server, and again until a worker serves a model. */
  load(): void;
}

/** The server's models. On a system that has just been started there are none until a worker has loaded one. */
export function createModelList({ session, onModels, onProblem }: ModelListOptions): ModelList {
  let loading = new AbortController();
  const load = async (signal: AbortSignal): Promise<void> => {
    try {
      const models = await session.client.models({ signal });
      onModels(models);
      if (models.some(({ is_possible }) => is_possible)) return;
    } catch (error) {
      if (signal.aborted) return;
      onProblem(errorWords(error));
    }
    const timer = setTimeout(() => void load(signal), lookAgainMs);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  };
  return {
    load() {
      loading.abort();
      loading = new AbortController();
      void load(loading.signal);
    },
  };
}
