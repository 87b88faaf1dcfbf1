import { expect, it } from 'vitest';
import { parsePromptWeights, takeLoraTags } from './webui-prompt.ts';

/** Returns parts as `text*weight`. */
function partsOf(prompt: string): string[] {
  return parsePromptWeights(prompt).map(({ text, weight }) => `${text}*${Number(weight.toFixed(6))}`);
}

it.each([
  ['a red fox', ['a red fox*1']],
  ['', []],
  ['a (red) fox', ['a *1', 'red*1.1', ' fox*1']],
  ['a ((red)) fox', ['a *1', 'red*1.21', ' fox*1']],
  ['a [red] fox', ['a *1', 'red*0.909091', ' fox*1']],
  ['a (red:1.3) fox', ['a *1', 'red*1.3', ' fox*1']],
  ['(red: .5 )(fox:-1)', ['red*0.5', 'fox*-1']],
  ['((red:2) fox)', ['red*2.2', ' fox*1.1']],
  [String.raw`a \(red\) \[fox\] \\`, [String.raw`a (red) [fox] \*1`]],
  ['a (red fox', ['a *1', 'red fox*1.1']],
  ['a) red] fox:1.2)', ['a) red] fox:1.2)*1']],
  ['ratio 16:9, (4:3:2)', ['ratio 16:9, *1', '4:3*2']],
  // The example in the documentation of AUTOMATIC1111's parser, with its numbers.
  [
    'a (((house:1.3)) [on] a (hill:0.5), sun, (((sky))).',
    ['a *1', 'house*1.573', ' *1.1', 'on*1', ' a *1.1', 'hill*0.55', ', sun, *1.1', 'sky*1.4641', '.*1.1'],
  ],
])('reads the weights of %j as AUTOMATIC1111 does', (prompt, parts) => {
  expect(partsOf(prompt)).toEqual(parts);
});

it.each([
  ['a fox', 'a fox', []],
  ['a fox <lora:pixels>', 'a fox', [['pixels', 1]]],
  ['a <lora:pixels:0.8> fox, <lora:flat.v2:-1>', 'a fox,', [['pixels', 0.8], ['flat.v2', -1]]], // prettier-ignore
  ['<lora:pixels:0.8:0.5>', '', [['pixels', Number.NaN]]],
  ['<lora:> <lora> a < b', '<lora:> <lora> a < b', []],
])('takes the adapters out of %j', (prompt, rest, loras) => {
  const taken = takeLoraTags(prompt);
  expect([taken.prompt, taken.tags.map(({ id, scale }) => [id, scale])]).toEqual([rest, loras]);
});

it('reads 4000 brackets in time', () => {
  expect(parsePromptWeights('('.repeat(2000) + ')'.repeat(2000))).toEqual([]);
  expect(parsePromptWeights('(a'.repeat(2000))).toHaveLength(2000);
});
