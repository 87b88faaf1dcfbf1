/** The kinds of values that settings have. Each reads text, because that is all an environment holds. */
import { resolve } from 'node:path';
import { dtypeChoiceRange, isModelId, parseDevices, parseDtypeChoice, parseRedisUrl } from '@darkroom/core';
import type { Device, DtypeChoice } from '@darkroom/core';
import { z } from 'zod';
import type { SettingKind } from './setting.ts';

/** A whole number in decimal digits, both ends included. */
export function wholeNumber({ min, max }: { min: number; max: number }): SettingKind<number> {
  return {
    schema: z
      .string()
      .regex(/^-?\d{1,15}$/)
      .transform(Number)
      .pipe(z.number().int().min(min).max(max)),
    range: `a whole number from ${min} to ${max}`,
  };
}

/** A whole number, rounded down to a multiple of `step`. */
export function wholeNumberInSteps({
  min,
  max,
  step,
}: {
  min: number;
  max: number;
  step: number;
}): SettingKind<number> {
  const { schema, range } = wholeNumber({ min, max });
  return {
    schema: schema.transform((value) => value - (value % step)),
    range: `${range}; rounded down to a multiple of ${step}`,
  };
}

/** One of a few words. */
export function oneOf<const Word extends string>(words: readonly [Word, ...Word[]]): SettingKind<Word> {
  // The cast is sound: an enum's input is one of the words, all of which are strings.
  return { schema: z.string().pipe(z.enum(words)) as z.ZodType<Word, string>, range: listWords(words) };
}

/** `true` or `false`; `1` and `0` as well, as compose files and charts write them. */
export const trueOrFalse: SettingKind<boolean> = {
  schema: z
    .string()
    .regex(/^(?:true|false|1|0)$/i)
    .transform((text) => /^(?:true|1)$/i.test(text)),
  range: 'true or false',
};

/** Names with commas between them, passed on to whoever knows what they mean. */
export const nameList: SettingKind<string[]> = {
  schema: z
    .string()
    .regex(/^[^\s,]+(?:,[^\s,]+)*$/)
    .transform((text) => text.split(',')),
  range: 'names without spaces, with commas between them',
};

/** Devices in the order of preference. */
export const deviceList: SettingKind<readonly [Device, ...Device[]]> = {
  schema: z.string().transform((text, context) => {
    const devices = parseDevices(text);
    if (devices !== undefined) return devices;
    context.addIssue({ code: 'custom', message: 'is no list of devices' });
    return z.NEVER;
  }),
  range: 'cpu, webgpu, cuda or cuda:<number of the GPU>; several in the order of preference, with commas between them',
};

/** Where to listen. */
export const address: SettingKind<string> = {
  schema: z.string().regex(/^[^\s/]{1,255}$/),
  range: 'an address or host name',
};

/** A name that is safe in a Redis key. */
export const plainName: SettingKind<string> = {
  schema: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/),
  range: '1 to 64 characters of a-z, A-Z, 0-9, ".", "_" and "-"',
};

/** What somebody else has chosen to be let in by. */
export const password: SettingKind<string> = { schema: z.string().regex(/^\S+$/), range: 'text without spaces' };

/** A token of the Hugging Face hub; the name of its kind is part of it. */
export const hubToken: SettingKind<string> = {
  schema: z.string().regex(/^hf_\S+$/),
  range: 'a token, which begins hf_',
};

/** A file or directory, made absolute against the working directory. */
export const path: SettingKind<string> = { schema: z.string().transform((text) => resolve(text)), range: 'a path' };

/** A model id that survives a URL, a file name and a Redis hash tag. */
export const modelId: SettingKind<string> = {
  schema: z.string().refine(isModelId),
  range: '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends',
};

/** Which files of a model are loaded. */
export const dtypeChoice: SettingKind<DtypeChoice> = {
  schema: z.string().transform((text, context) => {
    const choice = parseDtypeChoice(text);
    if (choice !== undefined) return choice;
    context.addIssue({ code: 'custom' });
    return z.NEVER;
  }),
  range: dtypeChoiceRange,
};

/** Names of keys: a key's name is the owner of its requests, so it is part of keys in Redis and of logs. */
export const keyNamePattern = /^[A-Za-z0-9._-]{1,64}$/;

/** `name:key` pairs. Names may come twice, so that a key can be replaced while the old one still works. */
export const apiKeyPairs: SettingKind<readonly { name: string; key: string }[]> = {
  schema: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}:[\x21-\x2b\x2d-\x7e]+(?:\s*,\s*[A-Za-z0-9._-]{1,64}:[\x21-\x2b\x2d-\x7e]+)*$/)
    .transform((text) =>
      text.split(',').map((pair) => {
        const [name = '', ...key] = pair.trim().split(':');
        return { name, key: key.join(':') };
      }),
    ),
  range:
    'name:key pairs with commas between them; names of a-z, A-Z, 0-9, ".", "_" and "-", keys without spaces and commas',
};

/** `*`, or origins as browsers send them. */
export const origins: SettingKind<readonly string[]> = {
  schema: z
    .string()
    .transform((text) => text.split(',').map((origin) => origin.trim()))
    .refine((list) => list.every((origin) => origin === '*' || isOrigin(origin))),
  range: '* or origins such as https://example.com, with commas between them',
};

/** Where a server is. */
export const httpUrl: SettingKind<string> = {
  schema: z.string().refine((text) => /^https?:\/\//.test(text) && URL.canParse(text)),
  range: 'an http or https URL',
};

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

/** Where a Redis listens, or a Cluster, or the Sentinels that know where it is. */
export const redisUrl: SettingKind<string> = {
  schema: z.string().refine((text) => parseRedisUrl(text) !== undefined),
  range:
    'redis://host:port, unix:///path/of/socket, redis-cluster://host:port,host:port or redis-sentinel://host:port,host:port/name-of-the-master; user:password@ before the hosts, rediss for TLS',
};

function listWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
