/** Types of setting values, each with a parser from text. */
import { isIP } from 'node:net';
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

/** Creates a type for text that is only validated. */
function textMatching(isValid: (text: string) => boolean, range: string): SettingKind<string> {
  return { parse: (text) => (isValid(text) ? text : undefined), range };
}

function secretMatching(pattern: RegExp, range: string): SettingKind<string> {
  return { ...textMatching((text) => pattern.test(text), range), isSecret: true };
}

/** A whole number in decimal digits, bounds included. */
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

/** One of a few words, case-insensitive. */
export function oneOf<const Word extends string>(words: readonly Word[]): SettingKind<Word> {
  const range = `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return { parse: (text) => words.find((word) => word.toLowerCase() === text.toLowerCase()), range };
}

/** `true` or `false`; also `1` and `0`, as in compose files and charts. */
export const trueOrFalse: SettingKind<boolean> = {
  parse: (text) => (/^(?:true|false|1|0)$/i.test(text) ? /^(?:true|1)$/i.test(text) : undefined),
  range: 'true or false',
};

/** Names separated by commas. */
export const nameList: SettingKind<string[]> = {
  parse: (text) => (/^[^\s,]+(?:,[^\s,]+)*$/.test(text) ? text.split(',') : undefined),
  range: 'names without spaces, with commas between them',
};

/** Devices in the order of preference. */
export const deviceList: SettingKind<readonly [Device, ...Device[]]> = {
  parse: parseDevices,
  range: 'cpu, webgpu, cuda or cuda:<number of the GPU>; several in the order of preference, with commas between them',
};

/** Address to listen on. */
export const address = textMatching((text) => /^[^\s/]{1,255}$/.test(text), 'an address or host name');

/** Names of API keys. A key's name is the owner of its requests, so it is part of Redis keys and logs. */
export const keyNamePattern = /^[A-Za-z0-9._-]{1,64}$/;

/** Built-in executors. */
const executorNames = ['process', 'http', 'python'] as const;
export type ExecutorName = (typeof executorNames)[number];

/** npm package name with an optional scope and subpath. */
const packageName = /^(?:@[a-z0-9-~][a-z0-9-._~]*\/)?[a-z0-9-~][a-z0-9-._~]*(?:\/[A-Za-z0-9-._~]+)*$/;

/** A built-in executor or a custom module. A near miss of a built-in name is refused as a typo. */
export const executorChoice = textMatching((text) => {
  if (/^[./]/.test(text)) return true;
  const [name = ''] = executorNames.filter((name) => editDistance(name, text) <= 1);
  return packageName.test(text) && (name === '' || name === text);
}, 'process, http, python, the path of a module (which begins with . or /) or the name of a package');

/** A custom module. */
export const moduleChoice = textMatching(
  (text) => /^[./]/.test(text) || packageName.test(text),
  'the path of a module (which begins with . or /) or the name of a package',
);

/** An engine in Python. */
export const pythonModule = textMatching(
  (text) => /^[./].*\.py$/.test(text),
  'the path of a Python file, which begins with . or / and ends in .py',
);

/** A program: a name to look up in PATH, or a path. */
export const program = textMatching((text) => !text.includes('\n'), 'the name or path of a program');

/** Returns true if EXECUTOR names a custom module. */
export function isCustomModule(executor: string): boolean {
  return !executorNames.some((name) => name === executor);
}

/** A name that is safe in Redis keys. */
export const plainName = textMatching(
  (text) => keyNamePattern.test(text),
  '1 to 64 characters of a-z, A-Z, 0-9, ".", "_" and "-"',
);

/** A password chosen by another system. */
export const password = secretMatching(/^\S+$/, 'text without spaces');

/** A password sent in an HTTP header, which is limited to ASCII. */
export const headerPassword = secretMatching(/^[!-~]+$/, 'text of ASCII without spaces');

/** An access token of the Hugging Face hub; it starts with `hf_`. */
export const hubToken = secretMatching(/^hf_\S+$/, 'a token, which begins hf_');

/** A file or directory, resolved against the working directory. */
export const path: SettingKind<string> = { parse: (text) => resolve(text), range: 'a path' };

/** A model id, safe in URLs, file names and Redis hash tags. */
export const modelId = textMatching(
  isModelId,
  '1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends',
);

/** Weight types of the model files to load. */
export const dtypeChoice: SettingKind<DtypeChoice> = { parse: parseDtypeChoice, range: dtypeChoiceRange };

/** `name:key` pairs. A name may occur twice, so that a key can be rotated while the old one still works. */
export const apiKeyPairs: SettingKind<readonly { name: string; key: string }[]> = {
  parse: (text) =>
    parseItems(text, (pair) => {
      const [name = '', ...rest] = pair.split(':');
      const key = rest.join(':');
      return keyNamePattern.test(name) && /^[\x21-\x2b\x2d-\x7e]{16,}$/.test(key) ? { name, key } : undefined;
    }),
  range:
    'name:key pairs with commas between them; names of a-z, A-Z, 0-9, ".", "_" and "-", keys of at least 16 characters without spaces and commas',
  isSecret: true,
};

/** `*`, or origins as browsers send them. */
export const origins: SettingKind<readonly string[]> = {
  parse: (text) => parseItems(text, (origin) => (origin === '*' || isOrigin(origin) ? origin : undefined)),
  range: '* or origins such as https://example.com, with commas between them',
};

/** URL of a server. */
export const httpUrl = textMatching((text) => /^https?:\/\//.test(text) && URL.canParse(text), 'an http or https URL');

/** Returns the URL if it is http or https and has no user, password, query and fragment. */
function parsePlainUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  return [url.username, url.password, url.search, url.hash].every((part) => part === '') ? url : undefined;
}

/** Base URL used by clients, without a trailing slash. */
export const publicUrl: SettingKind<string> = {
  parse(text) {
    const url = parsePlainUrl(text);
    return url && isPathPrefix(url.pathname.replace(/\/+$/, '')) ? url.href.replace(/\/+$/, '') : undefined;
  },
  range: 'an http or https URL without user, password and query, such as https://example.com/darkroom',
};

/** Returns true for an empty text or a path without escapes and dot segments. */
function isPathPrefix(text: string): boolean {
  return /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)*$/.test(text);
}

/** IP addresses and CIDR ranges. */
export const addressRanges: SettingKind<readonly string[]> = {
  parse: (text) => parseItems(text, (range) => (isAddressRange(range) ? range : undefined)),
  range: 'IP addresses or ranges such as 10.0.0.0/8, with commas between them',
};

function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  const isLength = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  return version > 0 && isLength && rest.length === 0;
}

/** Base URL of a server; its credentials are a separate, secret setting. */
export const upstreamUrl = textMatching(
  (text) => parsePlainUrl(text) !== undefined,
  'an http or https URL without user, password and query',
);

/** Base URL of a server, without trailing slashes. */
export const hubUrl: SettingKind<string> = {
  ...httpUrl,
  parse: (text) => httpUrl.parse(text)?.replace(/\/+$/, ''),
};

/** Address of a Redis, a Redis Cluster, or Sentinels. */
export const redisUrl = textMatching(
  (text) => parseRedisUrl(text) !== undefined,
  'redis://host:port, unix:///path/of/socket, redis-cluster://host:port,host:port or redis-sentinel://host:port,host:port/name-of-the-master; user:password@ before the hosts, rediss for TLS',
);

/** Address of the blob store, without its credentials. */
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
