/** How the last request to the server went. */
export type Connection = 'good' | 'unreachable' | 'unready' | 'unauthorized';

/**
 * A `fetch` that tells how it goes: the client library tries again by itself, and silently. A POST is not tried again,
 * and who sent it says what became of it.
 */
export function watchedFetch(report: (connection: Connection) => void): typeof globalThis.fetch {
  return async (input, init) => {
    const isRetried = init?.method !== 'POST';
    try {
      const response = await globalThis.fetch(input, init);
      const connection = connectionOf(response.status);
      if (isRetried || connection !== 'unready') report(connection);
      return response;
    } catch (error) {
      if (isRetried && init?.signal?.aborted !== true) report('unreachable');
      throw error;
    }
  };
}

function connectionOf(status: number): Connection {
  if (status === 401) return 'unauthorized';
  return status === 429 || status === 502 || status === 503 || status === 504 ? 'unready' : 'good';
}
