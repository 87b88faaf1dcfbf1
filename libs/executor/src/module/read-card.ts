/** The card that a module gives itself, and its room. */
import type { ModelCard } from '@darkroom/core';
import type { PictureCard, UpstreamTextCard } from '@darkroom/kinds';
import type { OwnPictureCard, OwnRange, OwnTextCard } from './own-executor.ts';
import { isObject, isWhole, shownWhole, unknownField, WrongSaid } from './wrong-said.ts';

/** RGB of so many pixels each way is what one answer may hold. */
const mostPixels = 4096;
const mostSlots = 4096;
const most = 2 ** 31;
const reason = 'a module of its own runs it';

const commonFields = ['kind', 'id', 'ownedBy'];
const fields = {
  text: [...commonFields, 'maxModelTokens', 'takesMessages'],
  picture: [...commonFields, 'sizes', 'steps', 'guidance', 'schedulers', 'maxPromptTokens'],
};
const standardSizes = { multiple: 8, min: 64, max: 1024, default: { width: 512, height: 512 } };
const one: OwnRange = { min: 1, max: 1, default: 1 };

/** @throws WrongSaid naming the field, what it is and what was expected. */
export function readSlots(slots: unknown): number {
  if (slots === undefined) return 1;
  check('slots is', slots, `a whole number from 1 to ${mostSlots}`, isWhole(slots, 1, mostSlots));
  return slots as number;
}

/**
 * @param served the model's id and when it began to be served, in seconds since the epoch.
 * @throws WrongSaid naming the field, what it is and what was expected.
 */
export function readCard(said: unknown, served: Pick<ModelCard, 'id' | 'created'>): ModelCard {
  if (!isObject(said)) throw new WrongSaid('card is', said, 'an object with kind');
  const { kind, id = served.id, ownedBy = 'own' } = said;
  if (kind !== 'text' && kind !== 'picture')
    throw new WrongSaid('card.kind is', kind, '"text" or "picture"', shownWhole);
  const unknown = unknownField(said, fields[kind]);
  if (unknown !== undefined)
    throw new WrongSaid(
      `card.${unknown} is`,
      said[unknown],
      `no such field of a ${kind}: there are ${fields[kind].join(', ')}`,
    );
  if (id !== served.id)
    throw new WrongSaid(
      'card.id is',
      id,
      `${served.id}, as it is served: leave it out, or set MODEL_ID to it`,
      shownWhole,
    );
  check('card.ownedBy is', ownedBy, 'text of 1 to 64 characters', isText(ownedBy));
  const common = { ...served, ownedBy: ownedBy as string, pipeline: 'own' };
  return kind === 'text'
    ? textCard(said as object as OwnTextCard, common)
    : pictureCard(said as object as OwnPictureCard, common);
}

type Common = Omit<ModelCard, 'kind'>;

function textCard({ maxModelTokens, takesMessages = true }: OwnTextCard, common: Common): UpstreamTextCard {
  const expected = `a whole number from 1 to ${most}`;
  check(
    'card.maxModelTokens is',
    maxModelTokens,
    expected,
    maxModelTokens === undefined || isWhole(maxModelTokens, 1, most),
  );
  check('card.takesMessages is', takesMessages, 'true or false', typeof takesMessages === 'boolean');
  return {
    ...common,
    kind: 'text',
    mode: 'autoregressive',
    ...(maxModelTokens !== undefined && { maxModelTokens }),
    hasChatTemplate: takesMessages,
    hasTools: false,
    deterministic: { is: false, reason },
  };
}

function pictureCard(card: OwnPictureCard, common: Common): PictureCard {
  const { sizes = standardSizes, steps = one, guidance = one, schedulers = ['own'], maxPromptTokens = 0 } = card;
  checkSizes(sizes);
  checkRange('steps', steps, 'whole numbers from 1 to 1000', (value) => isWhole(value, 1, 1000));
  checkRange('guidance', guidance, 'numbers from 0 to 1000', (value) => value >= 0 && value <= 1000);
  const isNames = Array.isArray(schedulers) && schedulers.length > 0 && schedulers.every((name) => isText(name));
  check('card.schedulers is', schedulers, 'a list of names of 1 to 64 characters', isNames);
  check('card.maxPromptTokens is', maxPromptTokens, 'a whole number', isWhole(maxPromptTokens, 0, most));
  const { multiple, min, max } = sizes;
  const { width, height } = sizes.default;
  return {
    ...common,
    kind: 'picture',
    sizes: { multiple, min, max, default: { width, height } },
    steps: { min: steps.min, max: steps.max, default: steps.default },
    guidance: { min: guidance.min, max: guidance.max, default: guidance.default },
    schedulers: [...schedulers],
    defaultScheduler: schedulers[0]!,
    maxPromptTokens,
  };
}

function checkSizes(sizes: NonNullable<OwnPictureCard['sizes']>): void {
  const expected = `{ multiple, min, max, default: { width, height } } in pixels up to ${mostPixels}, with both sides of default multiples of multiple from min to max`;
  check('card.sizes is', sizes, expected, isObject(sizes) && isObject(sizes.default));
  const { multiple, min, max } = sizes;
  const areWhole = [multiple, min, max].every((value) => isWhole(value, 1, mostPixels));
  const { width, height } = sizes.default;
  const isMet = [width, height].every((side) => isWhole(side, min, max) && side % multiple === 0);
  check('card.sizes is', sizes, expected, areWhole && isMet);
}

function checkRange(name: string, range: OwnRange, expected: string, isTaken: (value: number) => boolean): void {
  const values = isObject(range) ? [range.min, range.default, range.max] : [];
  const areTaken = values.every((value) => typeof value === 'number' && isTaken(value));
  const isMet = values.length > 0 && areTaken && range.min <= range.default && range.default <= range.max;
  check(`card.${name} is`, range, `{ min, max, default } with ${expected} and default between min and max`, isMet);
}

function check(what: string, value: unknown, expected: string, isMet: boolean): void {
  if (!isMet) throw new WrongSaid(what, value, expected, shownWhole);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= 64;
}
