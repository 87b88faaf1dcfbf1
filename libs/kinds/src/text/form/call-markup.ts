import type { ChatMessage } from './chat-message.ts';

/** Markup of a model's tool calls, detected from its chat template. Arguments are a JSON object. */
export interface CallMarkup {
  /** Before the first call, if calls form a list: `[CALLS] [`. Otherwise empty. */
  readonly open: string;
  /** Before the name of a function: `<tool_call>\n{"name": "`. */
  readonly begin: string;
  /** Between the name and the arguments: `", "arguments": `. */
  readonly middle: string;
  /** After the arguments: `}\n</tool_call>`. */
  readonly end: string;
  /** Between two calls; absent if an answer has at most one. */
  readonly separator?: string;
  /** After the last call, if calls form a list. Otherwise empty. */
  readonly close: string;
}

/** Renders a conversation with tools, without the start of a next answer. */
export type RenderProbe = (messages: readonly ChatMessage[], tools: readonly object[]) => string;

const question: ChatMessage = { role: 'user', content: 'darkroom asks' };
const answer = 'darkroom answers';

/** Calls with names that no template contains. Some templates require ids of nine letters and digits. */
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
 * Detects how a model writes tool calls: a template renders earlier calls in the format that the model was trained on.
 *
 * @param specials texts of special tokens, which are not part of generated text.
 * @returns the markup, or the reason (a clause for error messages) why calls cannot be parsed from the text.
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

/** Returns the rendered answer with these calls, after its common start with a text answer; undefined if it fails. */
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
  /** Text before the last name: from the previous arguments, or from the start. */
  before: string;
  middle: string;
  after: string;
}

/** Returns the text around the last of these calls. */
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

/** Derives the markup of each call, of the separator and of the list from an answer with two calls. */
function markupOfTwo(
  one: Parts,
  after: string,
  two: Parts | undefined,
  specials: readonly string[],
): CallMarkup | undefined {
  // With a special token between the calls, the second is in an answer of its own.
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
  // `middle` must end the name, and each call needs enough units for its event ids.
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

/** Returns the text that starts a call: markup up to the first brace, or up to the name if it starts with a brace. */
export function triggerOf({ open, begin }: CallMarkup): string {
  if (open !== '') return open;
  const [words = ''] = begin.split('{');
  return words.trimEnd() || begin;
}
