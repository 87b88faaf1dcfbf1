import { characters, choice, literal, sequence } from './grammar-rules.ts';
import { json } from './json-grammar.ts';
import { type Schema, schemaError, shortJson } from './schema-keywords.ts';

/** Where numbers begin or end. */
interface Border {
  readonly value: number;
  /** It is none of them itself. */
  readonly isOpen: boolean;
}

/** A decimal without its point: `digits / 10^places`. */
interface Decimal {
  readonly digits: bigint;
  readonly places: number;
}

/** Of what is written before the point at most; a double tells this many digits apart. */
const maxDigits = 15;
const highest = 10 ** maxDigits - 1;
/** Digits after the point at least, where there is a border. */
const usualPlaces = 6;

/** Numbers of a schema; between borders they are written without an exponent. */
export function numberGrammar(type: 'number' | 'integer', schema: Schema, place: string): string {
  const low = tighter(borderOf(schema, 'minimum', place), borderOf(schema, 'exclusiveMinimum', place), 1);
  const high = tighter(borderOf(schema, 'maximum', place), borderOf(schema, 'exclusiveMaximum', place), -1);
  if (low === undefined && high === undefined) return json[type];
  const from = low ?? { value: -highest, isOpen: false };
  const to = high ?? { value: highest, isOpen: false };
  const ways: string[] = [];
  const places = type === 'integer' ? 0 : placesBetween([low, high]);
  for (let at = 0; at <= places; at++) {
    ways.push(...positive(from.value < 0 ? { value: 0, isOpen: false } : from, to, at));
    const top = to.value > 0 ? { value: 0, isOpen: true } : to;
    ways.push(...positive(opposite(top), opposite(from), at).map((way) => sequence(['"-"', way])));
  }
  if (ways.length > 0) return choice(ways);
  throw schemaError(place, `allows no ${type}: none is between ${from.value} and ${to.value}`);
}

/** One border; undefined if it is none, or farther away than numbers are written. */
function borderOf(schema: Schema, keyword: string, place: string): Border | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== 'number') throw schemaError(`${place}.${keyword}`, `is ${shortJson(value)}, expected a number`);
  const isLow = keyword.endsWith('inimum');
  if (isLow ? value <= -highest : value >= highest) return undefined;
  if (Math.abs(value) > highest || Number(value.toFixed(maxDigits)) !== value)
    throw schemaError(
      `${place}.${keyword}`,
      `is ${value}, expected at most ${maxDigits} digits before or after the point`,
    );
  return { value, isOpen: keyword.startsWith('exclusive') };
}

/** @param sign 1 for where numbers begin, −1 for where they end. */
function tighter(left: Border | undefined, right: Border | undefined, sign: 1 | -1): Border | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return sign * right.value >= sign * left.value ? right : left;
}

function opposite({ value, isOpen }: Border): Border {
  return { value: -value, isOpen };
}

/** So few digits after the point that doubles keep what is beside a border apart from it. */
function placesBetween(borders: readonly (Border | undefined)[]): number {
  const decimals = borders.flatMap((border) => (border === undefined ? [] : decimalOf(Math.abs(border.value))));
  const wanted = Math.max(usualPlaces, ...decimals.map(({ places }) => places));
  const whole = Math.max(...decimals.map(({ digits, places }) => String(digits / 10n ** BigInt(places)).length));
  return Math.max(0, Math.min(wanted, maxDigits - whole));
}

/** @param value 0 or more, with at most 15 places. */
function decimalOf(value: number): Decimal {
  const [whole = '', places = ''] = value
    .toFixed(maxDigits)
    .replace(/\.?0+$/u, '')
    .split('.');
  return { digits: BigInt(whole + places), places: places.length };
}

/** Numbers from 0 up between two borders, with so many places: a way to write those of each length. */
function positive(from: Border, to: Border, places: number): string[] {
  if (to.value < 0 || from.value > to.value) return [];
  const low = scaled(from, places, 'up');
  const high = scaled(to, places, 'down');
  const ways: string[] = [];
  for (let width = places + 1; width <= String(high).length || width === places + 1; width++) {
    const least = width === places + 1 ? 0n : 10n ** BigInt(width - 1);
    const most = 10n ** BigInt(width) - 1n;
    const [first, last] = [low > least ? low : least, high < most ? high : most];
    if (first <= last) ways.push(between(written(first, width, places), written(last, width, places)));
  }
  return ways;
}

/** The first whole number of 10^-places that is past a border, or at it. */
function scaled({ value, isOpen }: Border, places: number, way: 'up' | 'down'): bigint {
  const { digits, places: own } = decimalOf(Math.abs(value));
  const numerator = digits * 10n ** BigInt(places);
  const denominator = 10n ** BigInt(own);
  const floor = numerator / denominator;
  const isExact = floor * denominator === numerator;
  if (way === 'up') return isExact && !isOpen ? floor : floor + 1n;
  return isExact && isOpen ? floor - 1n : floor;
}

function written(number: bigint, width: number, places: number): string {
  const digits = String(number).padStart(width, '0');
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** Texts of digits between two of the same form, both among them. */
function between(first: string, last: string): string {
  if (first === last) return literal(first);
  const [start, end] = [first.slice(1), last.slice(1)];
  if (first[0] === last[0]) return sequence([literal(first[0]!), between(start, end)]);
  const ways: string[] = [];
  let [low, high] = [Number(first[0]), Number(last[0])];
  if (!/^[0.]*$/u.test(start))
    ways.push(sequence([literal(`${low++}`), between(start, start.replaceAll(/\d/gu, '9'))]));
  if (!/^[9.]*$/u.test(end)) ways.push(sequence([literal(`${high--}`), between(end.replaceAll(/\d/gu, '0'), end)]));
  if (low <= high)
    ways.push(sequence([digit(low, high), ...Array.from(start, (sign) => (sign === '.' ? '"."' : '[0-9]'))]));
  return choice(ways);
}

function digit(low: number, high: number): string {
  return characters([[0x30 + low, 0x30 + high]]);
}
