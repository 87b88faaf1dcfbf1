import { Template } from '@huggingface/jinja';
import { DarkroomError } from '@darkroom/core';
import { type CallMarkup, findCallMarkup } from '../form/call-markup.ts';
import type { ChatMessage } from '../form/chat-message.ts';

export interface RenderChatOptions {
  /** Tools in OpenAI's format: `{type: 'function', function: {name, description, parameters}}`. */
  readonly tools?: readonly object[];
  /** True (the default) to append the start of the answer. */
  readonly addGenerationPrompt?: boolean;
}

/** Renders messages as one text, in the format that a model was trained on. */
export interface ChatTemplate {
  /** Markup of the model's tool calls, or the reason why it cannot call tools. */
  readonly calls: { readonly markup: CallMarkup } | { readonly reason: string };
  /** @throws DarkroomError `invalid_request` if the template rejects these messages or does not support tools. */
  render(messages: readonly ChatMessage[], options?: RenderChatOptions): string;
}

/** Templates of a tokenizer_config.json by name; one without a name is `default`. */
export type TemplateSources = Readonly<Record<string, string>>;

/**
 * Compiles a model's chat template.
 *
 * @param specials texts of special tokens by the names that templates use, such as `bos_token`.
 * @param specialTexts texts of all special tokens.
 * @throws Error if the template is not valid Jinja.
 */
export function createChatTemplate(
  sources: TemplateSources,
  specials: Readonly<Record<string, string>>,
  specialTexts: readonly string[],
): ChatTemplate {
  const plain = new Template(sources['default'] ?? Object.values(sources)[0]!);
  const withTools = sources['tool_use'] === undefined ? plain : new Template(sources['tool_use']);
  // Templates of models that read images often take lists of parts only.
  let readsText = true;
  const renderWith = (template: Template, messages: readonly ChatMessage[], options: RenderChatOptions) => {
    const { tools = null, addGenerationPrompt = true } = options;
    const shown = withToolNames(messages.map(withCalls)).map(readsText ? (message) => message : withParts);
    return template.render({ ...specials, messages: shown, tools, add_generation_prompt: addGenerationPrompt });
  };
  const greeting: readonly ChatMessage[] = [{ role: 'user', content: 'Hi' }];
  const shows = (content: ChatMessage['content']) =>
    showsProbe(() => renderWith(plain, [{ role: 'user', content }], {}));
  readsText = shows(probeOf(0)) || !shows([{ type: 'text', text: probeOf(0) }]);
  const showsAny = showsTools((options) => renderWith(withTools, greeting, options));
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
        const lost = findOmittedMessage(messages, render);
        if (lost >= 0) throw omittedMessageError(messages, lost);
        return render(messages);
      } catch (error) {
        if (DarkroomError.isInstance(error)) throw error;
        const reason = (error as Error).message.slice(0, maxReasonCharacters);
        throw refusal('messages', `the model's template does not take them: ${reason}`, error);
      }
    },
  };
}

const maxReasonCharacters = 300;

function hasCalls({ tool_calls: calls }: ChatMessage): boolean {
  return Array.isArray(calls) && calls.length > 0;
}

/**
 * Parses the arguments of tool calls, which clients send as a JSON string and templates expect as an object. Removes an
 * empty `tool_calls`: some templates only test whether the field exists.
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

/** Adds the tool's name to tool results: some templates show it, but OpenAI's clients send only the id of the call. */
function withToolNames(messages: readonly ChatMessage[]): ChatMessage[] {
  const names = new Map<string, unknown>();
  return messages.map((message) => {
    const { role, tool_calls: calls, tool_call_id: id, name } = message;
    if (Array.isArray(calls))
      for (const call of calls as ({ id?: unknown; function?: { name?: unknown } } | null)[])
        if (typeof call?.id === 'string') names.set(call.id, call.function?.name);
    const called = role === 'tool' && typeof id === 'string' && name === undefined ? names.get(id) : undefined;
    return called === undefined ? message : { ...message, name: called };
  });
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function withParts(message: ChatMessage): ChatMessage {
  const { content } = message;
  return typeof content === 'string' ? { ...message, content: [{ type: 'text', text: content }] } : message;
}

/** Returns whether a template shows the message of a probe. */
function showsProbe(render: () => string): boolean {
  try {
    return render().includes(probeOf(0));
  } catch {
    return false;
  }
}

/** Returns whether a template supports tools, by rendering a probe tool: templates do not declare it. */
function showsTools(render: (options: RenderChatOptions) => string): boolean {
  const name = 'darkroom_probe_of_tools';
  const parameters = { type: 'object', properties: {} };
  try {
    return render({ tools: [{ type: 'function', function: { name, description: name, parameters } }] }).includes(name);
  } catch {
    return false;
  }
}

/**
 * Returns the index of the first message that the template omits, or -1. Many templates silently skip unknown roles, or
 * messages at some positions; the model would never see them.
 */
function findOmittedMessage(
  messages: readonly ChatMessage[],
  render: (messages: readonly ChatMessage[]) => string,
): number {
  const text = render(messages.map((message, index) => ({ ...message, content: probeOf(index) })));
  const shown = new Set(text.match(anyProbe));
  // Many templates show only the calls of a message with tool calls, not its content.
  return messages.findIndex(
    ({ tool_calls: calls }, index) => !(Array.isArray(calls) && calls.length > 0) && !shown.has(probeOf(index)),
  );
}

/** Returns a marker of digits, which templates leave unchanged when they change case, escape or trim. */
function probeOf(index: number): string {
  return `48151623${String(index).padStart(5, '0')}`;
}
const anyProbe = /48151623\d{5}/g;

function omittedMessageError(messages: readonly ChatMessage[], index: number): DarkroomError {
  const role = JSON.stringify(messages[index]!.role);
  return refusal(`messages.${index}`, `the model's template shows no message of the role ${role} at this place`);
}

function refusal(field: string, problem: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'text.render-chat', `${field}: ${problem}`, cause);
}
