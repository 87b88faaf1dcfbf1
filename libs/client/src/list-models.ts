import type { ClientContext } from './client-context.ts';
import type { Model } from './model.ts';
import { retrying } from './retrying.ts';
import { readJson } from './read-body.ts';
import { send } from './send.ts';

/** All models the API knows. */
export function listModels(context: ClientContext, signal: AbortSignal | undefined): Promise<Model[]> {
  return retrying(context, signal, async () => {
    const response = await send(context, '/v1/models', { signal });
    const { data } = await readJson<{ data: Model[] }>(context, response, signal);
    return data;
  });
}
