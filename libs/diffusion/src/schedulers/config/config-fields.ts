/** Fields of a scheduler's config: each is absent, null or of its type, or is refused with what came instead. */

/** The parsed JSON object. */
export type ConfigFields = Readonly<Record<string, unknown>>;

/** @throws TypeError unless it is a number. */
export function readNumber(fields: ConfigFields, name: string, absent: number): number {
  return readNumberOrNull(fields, name) ?? absent;
}

/** @throws TypeError unless it is absent, null or a number. */
export function readNumberOrNull(fields: ConfigFields, name: string): number | null {
  const value = fields[name] ?? null;
  return value === null || typeof value === 'number' ? value : refuseValue(name, value, 'a number');
}

/** @throws TypeError unless it is above 0. */
export function readPositive(fields: ConfigFields, name: string, absent: number): number {
  const value = readNumber(fields, name, absent);
  return value > 0 ? value : refuseValue(name, value, 'a number above 0');
}

/** @throws TypeError unless it is a whole number of at least `least`. */
export function readInteger(fields: ConfigFields, name: string, absent: number, least: number): number {
  const value = readNumber(fields, name, absent);
  if (Number.isSafeInteger(value) && value >= least) return value;
  return refuseValue(name, value, `an integer of at least ${least}`);
}

/** @throws TypeError unless it is true or false. */
export function readFlag(fields: ConfigFields, name: string, absent: boolean): boolean {
  return readFlagOrNull(fields, name) ?? absent;
}

/** @throws TypeError unless it is absent, null, true or false. */
export function readFlagOrNull(fields: ConfigFields, name: string): boolean | null {
  const value = fields[name] ?? null;
  return value === null || typeof value === 'boolean' ? value : refuseValue(name, value, 'true or false');
}

/** @throws TypeError unless it is absent, null or an array of numbers. */
export function readNumbers(fields: ConfigFields, name: string): number[] | null {
  const value = fields[name] ?? null;
  if (value === null) return null;
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'number')) return value;
  return refuseValue(name, value, 'an array of numbers or null');
}

/** @throws TypeError unless it is absent, null or one of the choices. */
export function readChoice<Choice extends string>(
  fields: ConfigFields,
  name: string,
  choices: readonly Choice[],
): Choice | null {
  const value = fields[name] ?? null;
  if (value === null) return null;
  return choices.find((choice) => choice === value) ?? refuseValue(name, value, `one of ${choices.join(', ')}`);
}

function refuseValue(name: string, value: unknown, expected: string): never {
  throw new TypeError(`scheduler config: ${name} must be ${expected}, not ${JSON.stringify(value)}`);
}
