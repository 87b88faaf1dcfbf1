export type PageStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/**
 * What the page keeps in this browser. What the browser does not take (it is full, or its user blocks it) stays until
 * the page is left: a request that has been sent must not get lost over that, nor the page refuse to begin.
 */
export function openPageStorage(
  // Reading the property is what a browser refuses that blocks it.
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
    // A SecurityError or a QuotaExceededError: nothing else comes from a storage.
    return { isDone: false };
  }
}
