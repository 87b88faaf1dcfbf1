/** How models call tools, by templates that show it in the ways of the families there are. */
import { describe, expect, it } from 'vitest';
import { createChatTemplate } from '../codec/chat-template.ts';
import { triggerOf } from './call-markup.ts';

/** Templates of which only the answers of the assistant differ. */
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

describe('calls are found', () => {
  it.each([
    [
      'each between marks',
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
      'with marks behind a line feed that is the head’s',
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
      'one, without marks',
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
      'with the name in the mark',
      callsOf(
        forEach(`{{ '<function=' + call.function.name + '>' + (call.function.arguments | tojson) + '</function>' }}`),
      ),
      { open: '', begin: '<function=', middle: '>', end: '</function>', separator: '', close: '' },
      '<function=',
    ],
    [
      'of which each is an answer of its own',
      callsOf(
        forEach(
          `{% if not loop.first %}{{ '<|end|>\\n<|start|>assistant\\n' }}{% endif %}{{ 'CALL {"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}' }}`,
        ),
      ),
      { open: '', begin: 'CALL {"name": "', middle: '", "arguments": ', end: '}', close: '' },
      'CALL',
    ],
    [
      'after thoughts that every answer has',
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

describe('a model calls no tools', () => {
  it.each([
    [
      'whose template shows none',
      createChatTemplate({ default: '{{ messages[0].content }}' }, {}, []).calls,
      'its template shows no tools',
    ],
    [
      'whose template shows no answers with calls',
      createChatTemplate(
        { default: '{{ tools | tojson }}{% for message in messages %}{{ message.content }}{% endfor %}' },
        {},
        [],
      ).calls,
      'its template writes no calls with a name and, after it, arguments as JSON',
    ],
    [
      'whose template throws at calls',
      callsOf(`{{ raise_exception('no calls') }}`),
      'its template shows no calls of tools',
    ],
    [
      'whose calls have no JSON',
      callsOf(
        forEach(
          `{{ '<function=' + call.function.name + '>' }}{% for name, value in call.function.arguments.items() %}{{ '<parameter=' + name + '>' + value + '</parameter>' }}{% endfor %}`,
        ),
      ),
      'its template writes no calls with a name and, after it, arguments as JSON',
    ],
    [
      'whose calls begin with a token that no text has',
      callsOf(listed('[CALLS] ['), { specials: ['<|start|>', '<|end|>', '[CALLS]'] }),
      'its calls have the special token [CALLS] in them, which is not part of a text',
    ],
    [
      'whose calls have ids',
      callsOf(
        forEach(
          `{{ '{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + ', "id": "' + call.id + '"}' }}`,
        ),
      ),
      'it writes ids of its calls',
    ],
    [
      'whose calls have nothing around the name',
      callsOf(forEach(`{{ call.function.name + ' ' + (call.function.arguments | tojson) }}`)),
      'its calls have nothing around the name',
    ],
  ])('%s', (_name, calls, reason) => expect(calls).toEqual({ reason }));
});
