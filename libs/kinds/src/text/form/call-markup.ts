import type { ChatMessage } from '../codec/chat-message.ts';

/** What stands around calls of tools in an answer of a model: its template says it. Arguments are an object of JSON. */
export interface CallMarkup {
  /** In front of the first call, where calls stand in a list: `[CALLS] [`. Else empty. */
  readonly open: string;
  /** In front of the name of a function: `<tool_call>\n{"name": "`. */
  readonly begin: string;
  /** Between the name and the arguments: `", "arguments": `. */
  readonly middle: string;
  /** Behind the arguments: `}\n</tool_call>`. */
  readonly end: string;
  /** Between two calls; absent where an answer has one at most. */
  readonly separator?: string;
  /** Behind the last call, where calls stand in a list. Else empty. */
  readonly close: string;
}

/** A conversation with tools as a template writes it, without the beginning of a next answer. */
export type RenderProbe = (messages: readonly ChatMessage[], tools: readonly object[]) => string;

const question: ChatMessage = { role: 'user', content: 'darkroom asks' };
const answer = 'darkroom answers';

/** Calls that no template has of its own. Some templates take no id but one of nine letters and digits. */
const probes = ['first', 'second'].map((word, at) => ({
  id: `darkroom${at}`,
  name: `darkroom_${word}_probe`,
  value: `darkroom ${word} value`,
}));
type Probe = (typeof probes)[number];

const key = 'darkroom_key';
const tools = probes.map(({ name }) => ({
  type: 'function',
  function: {
    name,
    description: 'A probe.',
    parameters: { type: 'object', properties: { [key]: { type: 'string', description: 'A probe.' } }, required: [key] },
  },
}));

/**
 * Finds out how a model calls tools: a template that shows earlier calls to its model shows how it was taught to write them.
 *
 * @param specials texts of tokens that a written text does not have.
 * @returns why there is none, in words that go on after the name of the model, where the calls cannot be told from the text.
 */
export function findCallMarkup(
  render: RenderProbe,
  specials: readonly string[],
): { markup: CallMarkup } | { reason: string } {
  const [first] = probes as [Probe, Probe];
  const shownFirst = tryToShow(render, [first]);
  if (shownFirst === undefined) return { reason: 'its template shows no calls of tools' };
  const one = partsOf(shownFirst, [first]);
  if (one === undefined) return { reason: 'its template writes no calls with a name and, after it, arguments as JSON' };
  const after = untilSpecial(one.after, specials).trimEnd();
  const shownBoth = tryToShow(render, probes);
  const two = shownBoth === undefined ? undefined : partsOf(shownBoth, probes);
  const markup = markupOfTwo(one, after, two, specials) ?? {
    open: '',
    begin: one.before.trimStart(),
    middle: one.middle,
    end: after,
    close: '',
  };
  return problemOf(markup, specials) ?? { markup };
}

/** What an answer has with these calls that it has not with text; undefined if there is nothing of them. */
function tryToShow(render: RenderProbe, calls: readonly Probe[]): string | undefined {
  try {
    const plain = render([question, { role: 'assistant', content: answer }], tools);
    const start = plain.lastIndexOf(answer);
    if (start < 0) return undefined;
    const tool_calls = calls.map(({ id, name, value }) => ({
      id,
      type: 'function',
      function: { name, arguments: { [key]: value } },
    }));
    const shown = render([question, { role: 'assistant', content: '', tool_calls }], tools);
    return shown.slice(commonStart(shown, plain.slice(0, start)).length);
  } catch {
    return undefined;
  }
}

interface Parts {
  /** In front of the last name: from the arguments before it, or from the beginning on. */
  before: string;
  middle: string;
  after: string;
}

/** What stands around the last of these calls. */
function partsOf(shown: string, calls: readonly Probe[]): Parts | undefined {
  let rest = shown;
  let parts: Parts | undefined;
  for (const { name, value } of calls) {
    const at = rest.indexOf(name);
    const tail = at < 0 ? '' : rest.slice(at + name.length);
    const [json] = new RegExp(String.raw`\{\s*"${key}"\s*:\s*"${value}"\s*\}`).exec(tail) ?? [];
    if (json === undefined) return undefined;
    const middle = tail.slice(0, tail.indexOf(json));
    const before = rest.slice(0, at);
    rest = tail.slice(middle.length + json.length);
    parts = { before, middle, after: rest };
  }
  return parts;
}

/** Two calls say what belongs to each of them, what stands between them, and what around all. */
function markupOfTwo(
  one: Parts,
  after: string,
  two: Parts | undefined,
  specials: readonly string[],
): CallMarkup | undefined {
  // A special token between them: the second is in an answer of its own.
  if (two === undefined || two.middle !== one.middle || hasSpecial(two.before, specials)) return undefined;
  const begin = commonEnd(one.before, two.before).trimStart();
  if (begin === '') return undefined;
  const between = two.before.slice(0, two.before.length - begin.length);
  const end = commonStart(between, after);
  const open = one.before.slice(0, one.before.length - begin.length).trimStart();
  const separator = between.slice(end.length);
  return { open, begin, middle: one.middle, end, separator, close: after.slice(end.length) };
}

function problemOf(markup: CallMarkup, specials: readonly string[]): { reason: string } | undefined {
  const { open, begin, middle, end, separator = '', close } = markup;
  const all = [open, begin, middle, end, separator, close];
  const special = specials.find((text) => all.some((part) => part.includes(text)));
  if (special !== undefined)
    return { reason: `its calls have the special token ${special} in them, which is not part of a text` };
  if (probes.some(({ id }) => all.some((part) => part.includes(id)))) return { reason: 'it writes ids of its calls' };
  // A name ends where the middle begins; and each call has units enough for the numbers of its events.
  if (/^[\w-]/.test(middle) || middle === '' || begin === '')
    return { reason: 'its calls have nothing around the name' };
  return undefined;
}

function hasSpecial(text: string, specials: readonly string[]): boolean {
  return specials.some((special) => text.includes(special));
}

function untilSpecial(text: string, specials: readonly string[]): string {
  const places = specials.map((special) => text.indexOf(special)).filter((at) => at >= 0);
  return text.slice(0, Math.min(text.length, ...places));
}

function commonStart(left: string, right: string): string {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return left.slice(0, length);
}

function commonEnd(left: string, right: string): string {
  let length = 0;
  while (length < left.length && left.at(-1 - length) === right.at(-1 - length)) length += 1;
  return left.slice(left.length - length);
}

/**
 * What an answer cannot have in it without calling a tool: text up to the first brace, or up to the name where a call
 * begins with one.
 */
export function triggerOf({ open, begin }: CallMarkup): string {
  if (open !== '') return open;
  const [words = ''] = begin.split('{');
  return words.trimEnd() || begin;
}
