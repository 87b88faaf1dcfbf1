import type { Demand, Kind } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { createTextCodec, type TextCodec } from './codec/text-codec.ts';
import { resolveText } from './resolve-text.ts';
import { heaviestTextField, textBytes } from './text-bytes.ts';
import type { TextCard } from './text-card.ts';
import { textCost, type TextInput } from './text-input.ts';
import { textSchema } from './text-schema.ts';
import { textEventView, textModelView, textProgressView, textRequestView, textResultView } from './text-views.ts';
import type { StoredTextInput } from './text-views.ts';
import { resolveUpstreamText } from './upstream/resolve-upstream-text.ts';
import { upstreamTextDemand } from './upstream/upstream-text-demand.ts';
import { isForUpstream, publicAsk, type UpstreamTextCard, type UpstreamTextInput } from './upstream/upstream-text.ts';

/** Codecs that a process keeps: the least recently used goes. */
const maxCodecs = 16;

/** Texts, token by token or block by block. */
export const text: TextKind = createText();

type TextKind = Kind<TextInput | UpstreamTextInput, TextCard | UpstreamTextCard>;

function createText(): TextKind {
  const codecs = new Map<string, Promise<TextCodec>>();
  return {
    id: 'text',
    outputs: 'text',
    bodySchema: textSchema,
    resolve: async (body, card, options) =>
      card.codec === undefined
        ? resolveUpstreamText(body, card, options)
        : resolveText(body, card, await keptCodec(codecs, card, options), options),
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

function demandOf(input: TextInput): Demand {
  const { n, prompt, maxTokens } = input;
  const slots = n * (prompt.length + maxTokens);
  return { shapeKey: 'text', outputs: n, slots, cost: textCost(input), bytes: textBytes(input) };
}

function withoutPrivate(input: TextInput | UpstreamTextInput): StoredTextInput | UpstreamTextInput {
  if (isForUpstream(input)) {
    const { said: _said, asked, ...others } = input;
    return { ...others, asked: publicAsk(asked) };
  }
  const { prompt: _prompt, stop: _stop, logitBias: _bias, said: _said, ...others } = input;
  return others;
}

/** Made once for all requests; one that could not be read is read again by the next. */
function keptCodec(
  codecs: Map<string, Promise<TextCodec>>,
  { id, codec: name }: TextCard,
  { readAsset }: RequestOptions,
): Promise<TextCodec> {
  const kept = codecs.get(name) ?? readAsset(id, name).then((bytes) => createTextCodec(bytes));
  codecs.delete(name);
  codecs.set(name, kept);
  kept.catch(() => codecs.delete(name));
  const [oldest] = codecs.keys();
  if (codecs.size > maxCodecs && oldest !== undefined) codecs.delete(oldest);
  return kept;
}
