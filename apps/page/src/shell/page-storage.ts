export type PageStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/**
 * Opens the browser's storage. Values that it does not accept (it is full or blocked) stay in memory while the page is
 * open, so that submitted requests are not lost and the page works.
 */
export function openPageStorage(
  // A browser that blocks the storage throws when the property is read.
  open: () => PageStorage = () => localStorage,
): PageStorage {
  const unsaved = new Map<string, string>();
  return {
    getItem(key) {
      return unsaved.get(key) ?? attempt(() => open().getItem(key)).value ?? null;
    },
    setItem(key, value) {
      if (attempt(() => open().setItem(key, value)).isDone) unsaved.delete(key);
      else unsaved.set(key, value);
    },
    removeItem(key) {
      unsaved.delete(key);
      attempt(() => open().removeItem(key));
    },
  };
}

function attempt<Value>(work: () => Value): { isDone: boolean; value?: Value } {
  try {
    return { isDone: true, value: work() };
  } catch {
    // A SecurityError or a QuotaExceededError; storages throw nothing else.
    return { isDone: false };
  }
}

/** Parses a stored list. Skips invalid items: other versions of the page or users may have written them. */
export function parseItems<Item>(text: string | null, isItem: (value: unknown) => value is Item): Item[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter(isItem) : [];
  } catch {
    return [];
  }
}
