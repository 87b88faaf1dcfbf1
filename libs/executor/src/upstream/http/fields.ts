/** Reads fields of untrusted JSON. */

/** Returns a field of an object, or undefined if there is none. */
export function fieldOf(value: unknown, name: string | symbol): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string | symbol, unknown>)[name] : undefined;
}

export function textProperty(value: unknown, name: string): string | undefined {
  const field = fieldOf(value, name);
  return typeof field === 'string' ? field : undefined;
}

export function numberProperty(value: unknown, name: string): number | undefined {
  const field = fieldOf(value, name);
  return typeof field === 'number' && Number.isFinite(field) ? field : undefined;
}

export function listProperty(value: unknown, name: string): readonly unknown[] {
  const field = fieldOf(value, name);
  return Array.isArray(field) ? field : [];
}
