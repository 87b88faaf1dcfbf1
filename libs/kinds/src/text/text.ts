import type { Kind, ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { createTextCodec, type TextCodec } from './codec/text-codec.ts';
import { constraintOf } from './form/form-constraint.ts';
import { Grammars } from './grammar/grammars.ts';
import { resolveText } from './resolve-text.ts';
import { heaviestTextField, textBytes } from './text-bytes.ts';
import type { TextCard } from './text-card.ts';
import { textCost, type TextInput } from './text-input.ts';
import { textSchema } from './text-schema.ts';
import { textEventView, textModelView, textProgressView, textRequestView, textResultView } from './text-views.ts';

/** Codecs that a process keeps: the least recently used goes. */
const maxCodecs = 16;

/** Texts, token by token or block by block. */
export const text: Kind<TextInput, TextCard> = createText();

function createText(): Kind<TextInput, TextCard> {
  const codecs = new Map<string, Promise<TextCodec>>();
  const grammars = new Grammars();
  return {
    id: 'text',
    outputs: 'text',
    bodySchema: textSchema,
    resolve: async (body, card, options) =>
      withConstraint(resolveText(body, card, await keptCodec(codecs, card, options), options), grammars),
    demandOf: (input) => ({
      shapeKey: 'text',
      outputs: input.n,
      slots: input.n * (input.prompt.length + input.maxTokens),
      cost: textCost(input),
      bytes: textBytes(input),
    }),
    heaviestField: heaviestTextField,
    stepsOf: ({ maxTokens }) => maxTokens,
    withoutPrivate: ({
      prompt: _prompt,
      stop: _stop,
      logitBias: _bias,
      constraint: _constraint,
      form: _form,
      said: _said,
      ...input
    }) => input,
    modelView: textModelView,
    requestView: textRequestView,
    resultView: textResultView,
    progressView: textProgressView,
    eventView: textEventView,
  };
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
