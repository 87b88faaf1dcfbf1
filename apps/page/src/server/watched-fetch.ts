/** The outcome of the last request to the server. */
export type Connection = 'good' | 'unreachable' | 'unready' | 'unauthorized';

/**
 * Returns a `fetch` that reports its outcomes, because the client library retries silently. A refused POST is not
 * reported: the library does not retry it, and its sender shows the error.
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
