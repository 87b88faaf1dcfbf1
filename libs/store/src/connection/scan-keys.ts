import type { StoreConnection } from './store-connection.ts';

const scanCount = 500;

/** Keys that match a pattern, on every server that holds keys; one may come twice. Costly on a large store. */
export async function* scanKeys(store: StoreConnection, pattern: string): AsyncGenerator<string, void> {
  for (const server of store.masters()) {
    let cursor = '0';
    do {
      const [next, page] = await server.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount);
      cursor = next;
      yield* page;
    } while (cursor !== '0');
  }
}

/** A text as a pattern that matches it alone. */
export function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, String.raw`\$&`);
}
