/** Detection of tool call markup from templates in the styles of common model families. */
import { describe, expect, it } from 'vitest';
import { createChatTemplate } from '../codec/chat-template.ts';
import { triggerOf } from './call-markup.ts';

/** Returns the calls of templates that differ only in the assistant's messages. */
function callsOf(
  ofCalls: string,
  { head = '<|start|>assistant\n', thoughts = '', specials = ['<|start|>', '<|end|>'] } = {},
) {
  const template = `{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}
{%- for message in messages %}
{%- if message.tool_calls %}{{ ${JSON.stringify(head + thoughts)} }}${ofCalls}{{ '<|end|>\\n' }}
{%- else %}{{ '<|start|>' + message.role + '\\n' + ${JSON.stringify(thoughts)} + message.content + '<|end|>\\n' }}
{%- endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}`;
  return createChatTemplate({ default: template }, {}, specials).calls;
}

const forEach = (each: string) => `{% for call in message.tool_calls %}${each}{% endfor %}`;
const hermes = forEach(
  `{{ '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}{% if not loop.last %}{{ '\\n' }}{% endif %}`,
);
const listed = (open: string) =>
  `{{ '${open}' }}${forEach(`{{ '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}{% if not loop.last %}{{ ', ' }}{% endif %}`)}{{ ']' }}`;
const llama = `{% if message.tool_calls | length != 1 %}{{ raise_exception('one call only') }}{% endif %}{% set call = message.tool_calls[0].function %}{{ '{"name": "' + call.name + '", "parameters": ' + (call.arguments | tojson) + '}' }}`;

describe('detects tool calls', () => {
  it.each([
    [
      'each enclosed by markers',
      callsOf(hermes),
      {
        open: '',
        begin: '<tool_call>\n{"name": "',
        middle: '", "arguments": ',
        end: '}\n</tool_call>',
        separator: '\n',
        close: '',
      },
      '<tool_call>',
    ],
    [
      'after a line feed that belongs to the message header',
      callsOf(
        forEach(
          `{{ '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}`,
        ),
        { head: '<|start|>assistant' },
      ),
      {
        open: '',
        begin: '<tool_call>\n{"name": "',
        middle: '", "arguments": ',
        end: '}\n</tool_call>',
        separator: '\n',
        close: '',
      },
      '<tool_call>',
    ],
    [
      'without markers, one per answer',
      callsOf(llama),
      { open: '', begin: '{"name": "', middle: '", "parameters": ', end: '}', close: '' },
      '{"name": "',
    ],
    [
      'in a list',
      callsOf(listed('[CALLS] [')),
      {
        open: '[CALLS] [',
        begin: '{"name": "',
        middle: '", "arguments": ',
        end: '}',
        separator: ', ',
        close: ']',
      },
      '[CALLS] [',
    ],
    [
      'with the name in the marker',
      callsOf(
        forEach(`{{ '<function=' + call.function.name + '>' + (call.function.arguments | tojson) + '</function>' }}`),
      ),
      { open: '', begin: '<function=', middle: '>', end: '</function>', separator: '', close: '' },
      '<function=',
    ],
    [
      'each in an answer of its own',
      callsOf(
        forEach(
          `{% if not loop.first %}{{ '<|end|>\\n<|start|>assistant\\n' }}{% endif %}{{ 'CALL {"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}`,
        ),
      ),
      { open: '', begin: 'CALL {"name": "', middle: '", "arguments": ', end: '}', close: '' },
      'CALL',
    ],
    [
      'after a thinking block that every answer has',
      callsOf(hermes, { thoughts: '<think>\n\n</think>\n\n' }),
      expect.objectContaining({ open: '', begin: '<tool_call>\n{"name": "' }),
      '<tool_call>',
    ],
  ])('%s', (_name, calls, markup, trigger) => {
    if ('reason' in calls) throw new Error(calls.reason);
    expect(calls.markup).toEqual(markup);
    expect(triggerOf(calls.markup)).toBe(trigger);
  });
});

describe('reports that a model cannot call tools', () => {
  it.each([
    [
      'if its template shows no tools',
      createChatTemplate({ default: '{{ messages[0].content }}' }, {}, []).calls,
      'its template shows no tools',
    ],
    [
      'if its template shows no answers with calls',
      createChatTemplate(
        { default: '{{ tools | tojson }}{% for message in messages %}{{ message.content }}{% endfor %}' },
        {},
        [],
      ).calls,
      'its template writes no calls with a name and, after it, arguments as JSON',
    ],
    [
      'if its template raises on calls',
      callsOf(`{{ raise_exception('no calls') }}`),
      'its template shows no calls of tools',
    ],
    [
      'if its calls have no JSON',
      callsOf(
        forEach(
          `{{ '<function=' + call.function.name + '>' }}{% for name, value in call.function.arguments.items() %}{{ '<parameter=' + name + '>' + value + '</parameter>' }}{% endfor %}`,
        ),
      ),
      'its template writes no calls with a name and, after it, arguments as JSON',
    ],
    [
      'if its calls begin with a special token',
      callsOf(listed('[CALLS] ['), { specials: ['<|start|>', '<|end|>', '[CALLS]'] }),
      'its calls have the special token [CALLS] in them, which is not part of a text',
    ],
    [
      'if its calls have ids',
      callsOf(
        forEach(
          `{{ '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + ', "id": "' + call.id + '"}' }}`,
        ),
      ),
      'it writes ids of its calls',
    ],
    [
      'if its calls have nothing around the name',
      callsOf(forEach(`{{ call.function.name + ' ' + (call.function.arguments | tojson) }}`)),
      'its calls have nothing around the name',
    ],
  ])('%s', (_name, calls, reason) => expect(calls).toEqual({ reason }));
});
