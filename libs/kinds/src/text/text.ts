import type { Demand, Kind, ResolveResult } from '../request/kind.ts';
import type { RequestPolicy } from '../request/request-fields.ts';
import { PromptReader } from './codec/prompt-reader.ts';
import { createTextCodec, type TextCodec } from './codec/text-codec.ts';
import { type ConstraintChecks, constraintOf } from './form-constraint.ts';
import { GrammarChecks } from './grammar/grammar-checks.ts';
import { resolveText } from './resolve-text.ts';
import { type TextCard, textCost, type TextInput } from './form/text-input.ts';
import { textSchema } from './text-schema.ts';
import { textEventView, textModelView, textProgressView, textRequestView, textResultView } from './text-views.ts';
import type { StoredTextInput } from './text-views.ts';
import { resolveUpstreamText } from './resolve-upstream-text.ts';
import { upstreamTextDemand } from './upstream-text-demand.ts';
import { isForUpstream, removePrivateFields, type UpstreamTextCard, type UpstreamTextInput } from './upstream-text.ts';

/** Maximum codecs in memory; the least recently used is evicted. */
const maxCodecs = 16;

interface CachedCodec {
  codec: TextCodec;
  reader: PromptReader;
}

/** The text kind: autoregressive and block diffusion models. */
export const text: TextKind = createText();

type TextKind = Kind<TextInput | UpstreamTextInput, TextCard | UpstreamTextCard>;

function createText(): TextKind {
  const codecs = new Map<string, Promise<CachedCodec>>();
  const checks = new GrammarChecks();
  return {
    id: 'text',
    outputs: 'text',
    bodySchema: textSchema,
    resolve: async (body, card, options) =>
      card.codec === undefined
        ? await resolveUpstreamText(body, card, options)
        : withConstraint(await resolveText(body, card, await cachedCodec(codecs, card, options), options), {
            checks,
            owner: options.owner ?? '',
          }),
    demandOf: (input) => (isForUpstream(input) ? upstreamTextDemand(input) : demandOf(input)),
    stepsOf: ({ maxTokens }) => maxTokens,
    withoutPrivate,
    modelView: textModelView,
    requestView: textRequestView,
    resultView: textResultView,
    progressView: textProgressView,
    eventView: textEventView,
  };
}

/** Adds the constraint for the engine to a resolved request. */
async function withConstraint(
  result: ResolveResult<TextInput>,
  by: ConstraintChecks,
): Promise<ResolveResult<TextInput>> {
  if (result.status === 'invalid') return result;
  const { input } = result.request;
  const made = input.form && (await constraintOf(input.form, input.callMarkup, by));
  if (made === undefined) return result;
  if ('problems' in made) return { status: 'invalid', problems: made.problems };
  return { status: 'resolved', request: { ...result.request, input: { ...input, constraint: made.constraint } } };
}

function demandOf(input: TextInput): Demand {
  const { n, prompt, maxTokens } = input;
  const slots = n * (prompt.length + maxTokens);
  return { shapeKey: 'text', outputs: n, slots, cost: textCost(input) };
}

function withoutPrivate(input: TextInput | UpstreamTextInput): StoredTextInput | UpstreamTextInput {
  if (isForUpstream(input)) {
    const { said: _said, images: _images, params, ...others } = input;
    return { ...others, params: removePrivateFields(params) };
  }
  const { prompt, stop: _stop, logitBias: _bias, constraint: _constraint, form: _form, said: _said, ...shown } = input;
  const { images: _images, messages: _messages, ...others } = shown;
  return { ...others, promptTokens: prompt.length };
}

/** Returns the codec from the cache, or loads it; after a failure the next request loads it again. */
function cachedCodec(
  codecs: Map<string, Promise<CachedCodec>>,
  { id, codec: name }: TextCard,
  { readAsset }: RequestPolicy,
): Promise<CachedCodec> {
  const kept = codecs.get(name) ?? readAsset(id, name).then(createCachedCodec);
  codecs.delete(name);
  codecs.set(name, kept);
  kept.catch(() => codecs.delete(name));
  const [oldest] = codecs.keys();
  if (codecs.size <= maxCodecs || oldest === undefined) return kept;
  void codecs.get(oldest)?.then(
    ({ reader }) => reader.close(),
    () => {},
  );
  codecs.delete(oldest);
  return kept;
}

function createCachedCodec(document: Uint8Array): CachedCodec {
  const codec = createTextCodec(document);
  return { codec, reader: new PromptReader(document, codec) };
}
