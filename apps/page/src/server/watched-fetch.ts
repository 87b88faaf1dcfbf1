/** How the last request to the server went. */
export type Connection = 'good' | 'unreachable' | 'unready' | 'unauthorized';

/**
 * A `fetch` that tells how it goes: the client library tries again by itself, and silently. Only a POST that is refused
 * it does not send again, and who sent it says why.
 */
export function watchedFetch(report: (connection: Connection) => void): typeof globalThis.fetch {
  return async (input, init) => {
    try {
      const response = await globalThis.fetch(input, init);
      const isRefusal = init?.method === 'POST' && (response.status === 429 || response.status === 503);
      report(isRefusal ? 'good' : connectionOf(response.status));
      return response;
    } catch (error) {
      if (init?.signal?.aborted !== true) report('unreachable');
      throw error;
    }
  };
}

function connectionOf(status: number): Connection {
  if (status === 401) return 'unauthorized';
  return status === 429 || status === 502 || status === 503 || status === 504 ? 'unready' : 'good';
}
