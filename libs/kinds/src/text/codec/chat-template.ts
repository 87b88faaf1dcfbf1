import { Template } from '@huggingface/jinja';
import { DarkroomError } from '@darkroom/core';
import { type CallMarkup, findCallMarkup } from '../form/call-markup.ts';
import type { ChatMessage } from './chat-message.ts';

export interface RenderChatOptions {
  /** As OpenAI's clients send them: `{type: 'function', function: {name, description, parameters}}`. */
  readonly tools?: readonly object[];
  /** The answer's beginning stands at the end; true by default. */
  readonly addGenerationPrompt?: boolean;
}

/** Makes one text of messages, in the way a model was taught to read them. */
export interface ChatTemplate {
  /** How the model calls tools that it is shown; or why it calls none. */
  readonly calls: { readonly markup: CallMarkup } | { readonly reason: string };
  /**
   * @throws DarkroomError `invalid_request` if the template does not take these messages, or has no tools.
   */
  render(messages: readonly ChatMessage[], options?: RenderChatOptions): string;
}

/** The templates of a tokenizer_config.json by their names; one without a name is `default`. */
export type TemplateSources = Readonly<Record<string, string>>;

/**
 * Reads a model's template.
 *
 * @param specials names that templates use for special tokens, such as `bos_token`.
 * @param specialTexts of all special tokens.
 * @throws Error if it is no Jinja.
 */
export function createChatTemplate(
  sources: TemplateSources,
  specials: Readonly<Record<string, string>>,
  specialTexts: readonly string[],
): ChatTemplate {
  const plain = new Template(sources['default'] ?? Object.values(sources)[0]!);
  const withTools = sources['tool_use'] === undefined ? plain : new Template(sources['tool_use']);
  const renderWith = (template: Template, messages: readonly ChatMessage[], options: RenderChatOptions) => {
    const { tools = null, addGenerationPrompt = true } = options;
    const shown = messages.map(withCalls).map(withToolName);
    return template.render({ ...specials, messages: shown, tools, add_generation_prompt: addGenerationPrompt });
  };
  const showsAny = showsTools((options) => renderWith(withTools, [{ role: 'user', content: 'Hi' }], options));
  const render = (messages: readonly ChatMessage[], tools: readonly object[]) =>
    renderWith(withTools, messages, { tools, addGenerationPrompt: false });
  const calls = showsAny ? findCallMarkup(render, specialTexts) : { reason: 'its template shows no tools' };

  return {
    calls,
    render(messages, options = {}) {
      const usesTools = options.tools !== undefined || messages.some(hasCalls);
      if (usesTools && 'reason' in calls) throw refusal('tools', `the model calls none: ${calls.reason}`);
      try {
        const render = (shown: readonly ChatMessage[]) => renderWith(usesTools ? withTools : plain, shown, options);
        const lost = lostMessage(messages, render);
        if (lost >= 0) throw passedOver(messages, lost);
        return render(messages);
      } catch (error) {
        if (DarkroomError.isInstance(error)) throw error;
        const reason = (error as Error).message.slice(0, longestReason);
        throw refusal('messages', `the model's template does not take them: ${reason}`, error);
      }
    },
  };
}

const longestReason = 300;

function hasCalls({ tool_calls: calls }: ChatMessage): boolean {
  return Array.isArray(calls) && calls.length > 0;
}

/**
 * Clients send arguments of calls as JSON in a string; templates write an object out themselves. Some ask only whether there
 * is such a field.
 */
function withCalls(message: ChatMessage): ChatMessage {
  const { tool_calls: calls, ...others } = message;
  if (!hasCalls(message)) return others;
  const tool_calls = (calls as ({ function?: { arguments?: unknown } } | null)[]).map((call) => {
    const given = call?.function?.arguments;
    return typeof given === 'string' ? { ...call, function: { ...call?.function, arguments: parsed(given) } } : call;
  });
  return { ...message, tool_calls };
}

/** Some templates say of what a tool gave whose it is; OpenAI's clients send the id of the call only. */
function withToolName(message: ChatMessage, _at: number, all: readonly ChatMessage[]): ChatMessage {
  const { role, tool_call_id: id, name } = message;
  if (role !== 'tool' || typeof id !== 'string' || name !== undefined) return message;
  const calls = all.flatMap(({ tool_calls: made }) => made ?? []) as { id?: unknown; function?: { name?: unknown } }[];
  const called = calls.find((call) => call.id === id)?.function?.name;
  return called === undefined ? message : { ...message, name: called };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Templates do not say whether they know tools, so one is shown to it. */
function showsTools(render: (options: RenderChatOptions) => string): boolean {
  const name = 'darkroom_probe_of_tools';
  const parameters = { type: 'object', properties: {} };
  try {
    return render({ tools: [{ type: 'function', function: { name, description: name, parameters } }] }).includes(name);
  } catch {
    return false;
  }
}

/** Many templates pass over roles that they do not know, or over messages at some places: what was said would never reach the model. */
function lostMessage(messages: readonly ChatMessage[], render: (messages: readonly ChatMessage[]) => string): number {
  const text = render(messages.map((message, index) => ({ ...message, content: probeOf(index) })));
  // Of a message with calls many templates show nothing else.
  return messages.findIndex(
    ({ tool_calls: calls }, index) => !(Array.isArray(calls) && calls.length > 0) && !text.includes(probeOf(index)),
  );
}

/** Digits stay what they are where a template changes case, escapes or trims. */
function probeOf(index: number): string {
  return `48151623${String(index).padStart(5, '0')}`;
}

function passedOver(messages: readonly ChatMessage[], index: number): DarkroomError {
  const role = JSON.stringify(messages[index]!.role);
  return refusal(`messages.${index}`, `the model's template shows no message of the role ${role} at this place`);
}

function refusal(field: string, problem: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'text.render-chat', `${field}: ${problem}`, cause);
}
