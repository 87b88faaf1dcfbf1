import type { Demand, Kind, ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { createEncodingThread, type EncodingThread } from './codec/encoding-thread.ts';
import { createTextCodec, type TextCodec } from './codec/text-codec.ts';
import { constraintOf } from './form/form-constraint.ts';
import { Grammars } from './grammar/grammars.ts';
import { certainlyTooMany, resolveText } from './resolve-text.ts';
import { heaviestTextField, textBytes } from './text-bytes.ts';
import type { TextCard } from './text-card.ts';
import { textCost, type TextInput } from './text-input.ts';
import { textSchema } from './text-schema.ts';
import { textEventView, textModelView, textProgressView, textRequestView, textResultView } from './text-views.ts';
import type { StoredTextInput } from './text-views.ts';
import { resolveUpstreamText } from './upstream/resolve-upstream-text.ts';
import { withCallGrammar } from './upstream/upstream-form.ts';
import { upstreamTextDemand } from './upstream/upstream-text-demand.ts';
import { isForUpstream, publicAsk, type UpstreamTextCard, type UpstreamTextInput } from './upstream/upstream-text.ts';

/** Codecs that a process keeps: the least recently used goes. */
const maxCodecs = 16;
/** UTF-16 units. Ids of a longer text are made in a thread: here that would take up to a tenth of a second. */
const maxHere = 8192;

interface KeptCodec {
  codec: TextCodec;
  thread: EncodingThread;
}

/** Texts, token by token or block by block. */
export const text: TextKind = createText();

type TextKind = Kind<TextInput | UpstreamTextInput, TextCard | UpstreamTextCard>;

function createText(): TextKind {
  const codecs = new Map<string, Promise<KeptCodec>>();
  const grammars = new Grammars();
  return {
    id: 'text',
    outputs: 'text',
    bodySchema: textSchema,
    resolve: async (body, card, options) =>
      card.codec === undefined
        ? withCallGrammar(resolveUpstreamText(body, card, options), card, grammars)
        : withConstraint(await resolveLong(body, card, options, await keptCodec(codecs, card, options)), grammars),
    demandOf: (input) => (isForUpstream(input) ? upstreamTextDemand(input) : demandOf(input)),
    heaviestField: heaviestTextField,
    stepsOf: ({ maxTokens }) => maxTokens,
    withoutPrivate,
    modelView: textModelView,
    requestView: textRequestView,
    resultView: textResultView,
    progressView: textProgressView,
    eventView: textEventView,
  };
}

/** Ids of long texts are made elsewhere: that takes its time. */
async function resolveLong(
  body: unknown,
  card: TextCard,
  options: RequestOptions,
  { codec, thread }: KeptCodec,
): Promise<ResolveResult<TextInput>> {
  const long: Parameters<TextCodec['encode']>[] = [];
  const encodeShort: TextCodec['encode'] = (given, ...how) => {
    if (given.length <= maxHere) return codec.encode(given, ...how);
    long.push([given, ...how]);
    // Some token, until its own are known.
    return [0];
  };
  const resolved = resolveText(body, card, { ...codec, encode: encodeShort }, options);
  if (long.length === 0) return resolved;
  const ids = new Map<string, number[]>();
  const most = certainlyTooMany(card);
  for (const [given, how] of long) ids.set(given, await thread.encode(given, { ...how, most }));
  const encode: TextCodec['encode'] = (given, how) => ids.get(given) ?? codec.encode(given, how);
  return resolveText(body, card, { ...codec, encode }, options);
}

/** With what the engine keeps to. */
async function withConstraint(result: ResolveResult<TextInput>, grammars: Grammars): Promise<ResolveResult<TextInput>> {
  if (result.status === 'invalid') return result;
  const { input } = result.request;
  const made = input.form && (await constraintOf(input.form, input.callMarkup, grammars));
  if (made === undefined) return result;
  if ('problems' in made) return { status: 'invalid', problems: made.problems };
  return { status: 'resolved', request: { ...result.request, input: { ...input, constraint: made.constraint } } };
}

function demandOf(input: TextInput): Demand {
  const { n, prompt, maxTokens } = input;
  const slots = n * (prompt.length + maxTokens);
  return { shapeKey: 'text', outputs: n, slots, cost: textCost(input), bytes: textBytes(input) };
}

function withoutPrivate(input: TextInput | UpstreamTextInput): StoredTextInput | UpstreamTextInput {
  if (isForUpstream(input)) {
    const { said: _said, callGrammar: _grammar, asked, ...others } = input;
    return { ...others, asked: publicAsk(asked) };
  }
  const {
    prompt: _prompt,
    stop: _stop,
    logitBias: _bias,
    constraint: _constraint,
    form: _form,
    said: _said,
    ...others
  } = input;
  return others;
}

/** Made once for all requests; one that could not be read is read again by the next. */
function keptCodec(
  codecs: Map<string, Promise<KeptCodec>>,
  { id, codec: name }: TextCard,
  { readAsset }: RequestOptions,
): Promise<KeptCodec> {
  const kept = codecs.get(name) ?? readAsset(id, name).then(makeCodec);
  codecs.delete(name);
  codecs.set(name, kept);
  kept.catch(() => codecs.delete(name));
  const [oldest] = codecs.keys();
  if (codecs.size <= maxCodecs || oldest === undefined) return kept;
  void codecs.get(oldest)?.then(
    ({ thread }) => thread.close(),
    () => {},
  );
  codecs.delete(oldest);
  return kept;
}

function makeCodec(document: Uint8Array): KeptCodec {
  return { codec: createTextCodec(document), thread: createEncodingThread(document) };
}
