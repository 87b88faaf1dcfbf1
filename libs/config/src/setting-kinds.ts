/** The kinds of values that settings have. Each reads text, because that is all an environment holds. */
import { resolve } from 'node:path';
import {
  dtypeChoiceRange,
  editDistance,
  isModelId,
  parseBytesUrl,
  parseDevices,
  parseDtypeChoice,
  parseRedisUrl,
} from '@darkroom/core';
import type { BytesAddress, Device, DtypeChoice } from '@darkroom/core';
import type { SettingKind } from './setting.ts';

/** Text that stays as it is. */
function textThat(isTaken: (text: string) => boolean, range: string): SettingKind<string> {
  return { parse: (text) => (isTaken(text) ? text : undefined), range };
}

/** A whole number in decimal digits, both ends included. */
export function wholeNumber(min: number, max: number, unit?: string): SettingKind<number> {
  return {
    parse: (text) => {
      const value = /^-?\d{1,15}$/.test(text) ? Number(text) : NaN;
      return value >= min && value <= max ? value : undefined;
    },
    range: `a whole number from ${min} to ${max}`,
    unit,
  };
}

/** The same, rounded down to a multiple of `step`. */
export function multipleOf(step: number, { parse, range, unit }: SettingKind<number>): SettingKind<number> {
  return {
    parse: (text) => {
      const value = parse(text);
      return value && value - (value % step);
    },
    range: `${range}; rounded down to a multiple of ${step}`,
    unit,
  };
}

/** One of a few words. */
export function oneOf<const Word extends string>(words: readonly Word[]): SettingKind<Word> {
  const range = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return { parse: (text) => words.find((word) => word === text), range };
}

/** `true` or `false`; `1` and `0` as well, as compose files and charts write them. */
export const trueOrFalse: SettingKind<boolean> = {
  parse: (text) => (/^(?:true|false|1|0)$/i.test(text) ? /^(?:true|1)$/i.test(text) : undefined),
  range: 'true or false',
};

/** Names with commas between them, passed on to whoever knows what they mean. */
export const nameList: SettingKind<string[]> = {
  parse: (text) => (/^[^\s,]+(?:,[^\s,]+)*$/.test(text) ? text.split(',') : undefined),
  range: 'names without spaces, with commas between them',
};

/** Devices in the order of preference. */
export const deviceList: SettingKind<readonly [Device, ...Device[]]> = {
  parse: parseDevices,
  range: 'cpu, webgpu, cuda or cuda:<number of the GPU>; several in the order of preference, with commas between them',
};

/** Where to listen. */
export const address = textThat((text) => /^[^\s/]{1,255}$/.test(text), 'an address or host name');

/** Names of keys: a key's name is the owner of its requests, so it is part of keys in Redis and of logs. */
export const keyNamePattern = /^[A-Za-z0-9._-]{1,64}$/;

/** Executors of ours. */
const executorNames = ['process', 'http'] as const;
export type ExecutorName = (typeof executorNames)[number];

/** A scope or none, and the name of a package, or a part of it. */
const packageName = /^(?:@[a-z0-9-~][a-z0-9-._~]*\/)?[a-z0-9-~][a-z0-9-._~]*(?:\/[A-Za-z0-9-._~]+)*$/;

/** One of ours, or a module of somebody's own. A name that is nearly one of ours was meant to be it. */
export const executorChoice = textThat((text) => {
  if (/^[./]/.test(text)) return true;
  const [name = ''] = executorNames.filter((name) => editDistance(name, text) <= 1);
  return packageName.test(text) && (name === '' || name === text);
}, 'process, http, the path of a module (which begins with . or /) or the name of a package');

/** A module of somebody's own. */
export const moduleChoice = textThat(
  (text) => /^[./]/.test(text) || packageName.test(text),
  'the path of a module (which begins with . or /) or the name of a package',
);

/** Whether a module of somebody's own is meant. */
export function isOwnModule(executor: string): boolean {
  return !executorNames.some((name) => name === executor);
}

/** A name that is safe in a Redis key. */
export const plainName = textThat(
  (text) => keyNamePattern.test(text),
  '1 to 64 characters of a-z, A-Z, 0-9, ".", "_" and "-"',
);

/** What somebody else has chosen to be let in by. */
export const password: SettingKind<string> = {
  ...textThat((text) => /^\S+$/.test(text), 'text without spaces'),
  isSecret: true,
};

/** What nobody finds by trying. */
export const longSecret: SettingKind<string> = {
  ...textThat((text) => /^\S{16,}$/.test(text), 'at least 16 characters without spaces'),
  isSecret: true,
};

/** One that goes out in a header, which takes no other characters. */
export const headerPassword: SettingKind<string> = {
  ...textThat((text) => /^[!-~]+$/.test(text), 'text of ASCII without spaces'),
  isSecret: true,
};

/** A token of the Hugging Face hub; the name of its kind is part of it. */
export const hubToken: SettingKind<string> = {
  ...textThat((text) => /^hf_\S+$/.test(text), 'a token, which begins hf_'),
  isSecret: true,
};

/** A file or directory, made absolute against the working directory. */
export const path: SettingKind<string> = { parse: (text) => resolve(text), range: 'a path' };

/** A model id that survives a URL, a file name and a Redis hash tag. */
export const modelId = textThat(
  isModelId,
  '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends',
);

/** Which files of a model are loaded. */
export const dtypeChoice: SettingKind<DtypeChoice> = { parse: parseDtypeChoice, range: dtypeChoiceRange };

/** `name:key` pairs. Names may come twice, so that a key can be replaced while the old one still works. */
export const apiKeyPairs: SettingKind<readonly { name: string; key: string }[]> = {
  parse: (text) =>
    parseItems(text, (pair) => {
      const [name = '', ...rest] = pair.split(':');
      const key = rest.join(':');
      return keyNamePattern.test(name) && /^[\x21-\x2b\x2d-\x7e]+$/.test(key) ? { name, key } : undefined;
    }),
  range:
    'name:key pairs with commas between them; names of a-z, A-Z, 0-9, ".", "_" and "-", keys without spaces and commas',
  isSecret: true,
};

/** `*`, or origins as browsers send them. */
export const origins: SettingKind<readonly string[]> = {
  parse: (text) => parseItems(text, (origin) => (origin === '*' || isOrigin(origin) ? origin : undefined)),
  range: '* or origins such as https://example.com, with commas between them',
};

/** Where a server is. */
export const httpUrl = textThat((text) => /^https?:\/\//.test(text) && URL.canParse(text), 'an http or https URL');

/** A server whose paths are put behind it; what lets one in has a setting of its own, which is never shown. */
export const upstreamUrl = textThat((text) => {
  const {
    protocol = '',
    username,
    password: word,
    search,
    hash,
  } = URL.canParse(text) ? new URL(text) : ({} as Partial<URL>);
  return /^https?:$/.test(protocol) && [username, word, search, hash].every((part) => part === '');
}, 'an http or https URL without user, password and query');

/** The same, where paths are put behind it. */
export const hubUrl: SettingKind<string> = {
  ...httpUrl,
  parse: (text) => httpUrl.parse(text)?.replace(/\/+$/, ''),
};

/** Where a Redis listens, or a Cluster, or the Sentinels that know where it is. */
export const redisUrl = textThat(
  (text) => parseRedisUrl(text) !== undefined,
  'redis://host:port, unix:///path/of/socket, redis-cluster://host:port,host:port or redis-sentinel://host:port,host:port/name-of-the-master; user:password@ before the hosts, rediss for TLS',
);

/** Where bytes are kept that are too many for Redis. What lets one in there is not part of it. */
export const bytesUrl: SettingKind<BytesAddress> = {
  parse: parseBytesUrl,
  range:
    'file:///path/of/directory or s3://bucket/prefix; behind that ?endpoint=, &region= and &links= (URLs of another server than Amazon’s, for us and for clients)',
};

function parseItems<Item>(text: string, parse: (text: string) => Item | undefined): Item[] | undefined {
  const items = text.split(',').map((item) => parse(item.trim()));
  return items.every((item) => item !== undefined) ? items : undefined;
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}
