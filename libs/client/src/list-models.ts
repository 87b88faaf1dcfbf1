import type { ClientContext } from './client-context.ts';
import type { Model } from './model.ts';
import { retrying } from './retrying.ts';
import { readBody, send } from './send.ts';

/** All models the API knows. */
export function listModels(context: ClientContext, signal: AbortSignal | undefined): Promise<Model[]> {
  return retrying(context, signal, async () => {
    const response = await send(context, '/v1/models', { signal });
    const { data } = await readBody(() => response.json() as Promise<{ data: Model[] }>, signal);
    return data;
  });
}
