import { expect, it } from 'vitest';
import { dtypeChoiceText, dtypeOfPart, parseDtypeChoice } from './dtype-choice.ts';

it.each([
  ['auto', { all: 'auto', parts: {} }, 'auto'],
  ['int8', { all: 'int8', parts: {} }, 'int8'],
  ['int8,vae_decoder=fp16', { all: 'int8', parts: { vae_decoder: 'fp16' } }, 'int8,vae_decoder=fp16'],
  ['q4', { all: 'q4', parts: {} }, 'q4'],
  ['unet=fp16', { all: 'auto', parts: { unet: 'fp16' } }, 'auto,unet=fp16'],
  [
    'vae_decoder=auto, text_encoder_2 = fp32 ,fp16',
    { all: 'fp16', parts: { vae_decoder: 'auto', text_encoder_2: 'fp32' } },
    'fp16,text_encoder_2=fp32,vae_decoder=auto',
  ],
])('parses %j', (text, choice, same) => {
  expect(parseDtypeChoice(text)).toEqual(choice);
  expect(dtypeChoiceText(choice as NonNullable<ReturnType<typeof parseDtypeChoice>>)).toBe(same);
});

it.each([
  '',
  'int4',
  'int8,',
  'int8,fp16',
  'vae=fp16',
  'unet=int4',
  'unet=',
  '=fp16',
  'unet=fp16,unet=int8',
  'unet=fp16=int8',
  'UNET=fp16',
  'toString=fp16',
  '__proto__=fp16',
])('rejects %j', (text) => expect(parseDtypeChoice(text)).toBeUndefined());

it('returns the dtype of a part, which overrides that of all parts', () => {
  const choice = parseDtypeChoice('int8,vae_decoder=fp16,unet=auto')!;
  expect(dtypeOfPart(choice, 'text_encoder')).toBe('int8');
  expect(dtypeOfPart(choice, 'vae_decoder')).toBe('fp16');
  expect(dtypeOfPart(choice, 'unet')).toBeUndefined();
});
