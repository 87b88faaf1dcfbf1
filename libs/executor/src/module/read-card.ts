/** Validates a module's model card and slots. */
import type { ModelCard } from '@darkroom/core';
import type { ImageCard, UpstreamTextCard } from '@darkroom/kinds';
import type { OwnImageCard, OwnRange, OwnTextCard } from './own-executor.ts';
import { isObject, isInteger, formatFull, unknownField, ContractViolation } from './contract-violation.ts';

/** Max side length in pixels: bounds the RGB data of one output. */
const maxSide = 4096;
const maxSlots = 4096;
const maxInt = 2 ** 31;
const reason = 'a custom module runs it';

const commonFields = ['kind', 'id', 'ownedBy'];
const fields = {
  text: [...commonFields, 'maxModelTokens', 'takesMessages', 'takesImages'],
  image: [...commonFields, 'sizes', 'steps', 'guidance', 'schedulers', 'maxPromptTokens'],
};
const standardSizes = { multiple: 8, min: 64, max: 1024, default: { width: 512, height: 512 } };
const one: OwnRange = { min: 1, max: 1, default: 1 };

/** @throws ContractViolation naming the field, its value and what was expected. */
export function readSlots(slots: unknown): number {
  if (slots === undefined) return 1;
  check('slots is', slots, `a whole number from 1 to ${maxSlots}`, isInteger(slots, 1, maxSlots));
  return slots as number;
}

/**
 * @param served the model's id and when it was first served, in seconds since the epoch.
 * @throws ContractViolation naming the field, its value and what was expected.
 */
export function readCard(value: unknown, served: Pick<ModelCard, 'id' | 'created'>): ModelCard {
  if (!isObject(value)) throw new ContractViolation('card is', value, 'an object with kind');
  const { kind, id = served.id, ownedBy = 'own' } = value;
  if (kind !== 'text' && kind !== 'image')
    throw new ContractViolation('card.kind is', kind, '"text" or "image"', formatFull);
  const unknown = unknownField(value, fields[kind]);
  if (unknown !== undefined)
    throw new ContractViolation(
      `card.${unknown} is`,
      value[unknown],
      `no such field of a ${kind}: there are ${fields[kind].join(', ')}`,
    );
  if (id !== served.id)
    throw new ContractViolation(
      'card.id is',
      id,
      `${served.id}, as it is served: leave it out, or set MODEL_ID to it`,
      formatFull,
    );
  check('card.ownedBy is', ownedBy, 'text of 1 to 64 characters', isText(ownedBy));
  const common = { ...served, ownedBy: ownedBy as string, pipeline: 'own' };
  return kind === 'text'
    ? textCard(value as object as OwnTextCard, common)
    : imageCard(value as object as OwnImageCard, common);
}

type Common = Omit<ModelCard, 'kind'>;

function textCard(
  { maxModelTokens, takesMessages = true, takesImages = false }: OwnTextCard,
  common: Common,
): UpstreamTextCard {
  const expected = `a whole number from 1 to ${maxInt}`;
  check(
    'card.maxModelTokens is',
    maxModelTokens,
    expected,
    maxModelTokens === undefined || isInteger(maxModelTokens, 1, maxInt),
  );
  check('card.takesMessages is', takesMessages, 'true or false', typeof takesMessages === 'boolean');
  check('card.takesImages is', takesImages, 'true or false', typeof takesImages === 'boolean');
  return {
    ...common,
    kind: 'text',
    mode: 'autoregressive',
    ...(maxModelTokens !== undefined && { maxModelTokens }),
    takes: takesImages ? ['image'] : [],
    hasChatTemplate: takesMessages,
    hasTools: false,
    deterministic: { is: false, reason },
  };
}

function imageCard(card: OwnImageCard, common: Common): ImageCard {
  const { sizes = standardSizes, steps = one, guidance = one, schedulers = ['own'], maxPromptTokens = 0 } = card;
  checkSizes(sizes);
  checkRange('steps', steps, 'whole numbers from 1 to 1000', (value) => isInteger(value, 1, 1000));
  checkRange('guidance', guidance, 'numbers from 0 to 1000', (value) => value >= 0 && value <= 1000);
  const isNames = Array.isArray(schedulers) && schedulers.length > 0 && schedulers.every((name) => isText(name));
  check('card.schedulers is', schedulers, 'a list of names of 1 to 64 characters', isNames);
  check('card.maxPromptTokens is', maxPromptTokens, 'a whole number', isInteger(maxPromptTokens, 0, maxInt));
  const { multiple, min, max } = sizes;
  const { width, height } = sizes.default;
  return {
    ...common,
    kind: 'image',
    sizes: { multiple, min, max, default: { width, height } },
    steps: { min: steps.min, max: steps.max, default: steps.default },
    guidance: { min: guidance.min, max: guidance.max, default: guidance.default },
    schedulers: [...schedulers],
    defaultScheduler: schedulers[0]!,
    maxPromptTokens,
  };
}

function checkSizes(sizes: NonNullable<OwnImageCard['sizes']>): void {
  const expected = `{ multiple, min, max, default: { width, height } } in pixels up to ${maxSide}, with both sides of default multiples of multiple from min to max`;
  check('card.sizes is', sizes, expected, isObject(sizes) && isObject(sizes.default));
  const { multiple, min, max } = sizes;
  const areWhole = [multiple, min, max].every((value) => isInteger(value, 1, maxSide));
  const { width, height } = sizes.default;
  const isMet = [width, height].every((side) => isInteger(side, min, max) && side % multiple === 0);
  check('card.sizes is', sizes, expected, areWhole && isMet);
}

function checkRange(name: string, range: OwnRange, expected: string, isTaken: (value: number) => boolean): void {
  const values = isObject(range) ? [range.min, range.default, range.max] : [];
  const areTaken = values.every((value) => typeof value === 'number' && isTaken(value));
  const isMet = values.length > 0 && areTaken && range.min <= range.default && range.default <= range.max;
  check(`card.${name} is`, range, `{ min, max, default } with ${expected} and default between min and max`, isMet);
}

function check(what: string, value: unknown, expected: string, isMet: boolean): void {
  if (!isMet) throw new ContractViolation(what, value, expected, formatFull);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= 64;
}
