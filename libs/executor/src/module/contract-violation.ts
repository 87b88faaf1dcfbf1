/** Max number and length of field names in an error message. */
const maxFields = 8;
const maxNameLength = 40;

/** Formats a value for a log. Strings may hold private text, so only their lengths are shown. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return `text of ${value.length} characters`;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes of ${value.constructor.name}`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value).map(([name, field]) => {
    const isNested = typeof field === 'object' && field !== null && !ArrayBuffer.isView(field);
    return `${name.slice(0, maxNameLength)}: ${isNested ? 'an object' : formatValue(field)}`;
  });
  return `{ ${fields.slice(0, maxFields).join(', ')}${fields.length > maxFields ? ', …' : ''} }`;
}

/** Formats a value that is not private: strings are shown in full. */
export function formatFull(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, maxNameLength)) : formatValue(value);
}

/** A module's value violates the contract. */
export class ContractViolation extends Error {
  /** @param what the start of the message, such as `run yielded`. @param show formats the value. */
  constructor(what: string, value: unknown, expected: string, show: (value: unknown) => string = formatValue) {
    super(`${what} ${show(value)}, expected ${expected}`);
    this.name = 'ContractViolation';
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** Returns the name of a field that is not allowed, if any. */
export function unknownField(value: object, known: readonly string[]): string | undefined {
  return Object.keys(value).find((name) => !known.includes(name));
}

export function isInteger(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
