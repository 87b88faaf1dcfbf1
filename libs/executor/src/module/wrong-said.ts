/** Names of a value's fields that are shown. */
const mostFields = 8;
const longestName = 40;

/** A value as a log may show it: of texts, which may be somebody's, only how long they are. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `text of ${value.length} characters`;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes of ${value.constructor.name}`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value).map(([name, field]) => {
    const isNested = typeof field === 'object' && field !== null && !ArrayBuffer.isView(field);
    return `${name.slice(0, longestName)}: ${isNested ? 'an object' : shown(field)}`;
  });
  return `{ ${fields.slice(0, mostFields).join(', ')}${fields.length > mostFields ? ', …' : ''} }`;
}

/** The same of what is nobody's: texts as they are. */
export function shownWhole(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, longestName)) : shown(value);
}

/** What a module said is not what was agreed. */
export class WrongSaid extends Error {
  /** @param what begins the message, such as `run gave out`. @param show how the value is shown. */
  constructor(what: string, value: unknown, expected: string, show: (value: unknown) => string = shown) {
    super(`${what} ${show(value)}, expected ${expected}`);
    this.name = 'WrongSaid';
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** Undefined where there is none that it should not have. */
export function unknownField(value: object, known: readonly string[]): string | undefined {
  return Object.keys(value).find((name) => !known.includes(name));
}

export function isWhole(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
