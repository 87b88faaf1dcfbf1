/** The messages that docs/troubleshooting.md quotes: each one is in the source, or is produced here. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '@darkroom/config';
import { expect, it } from 'vitest';
import { useSharedSystem } from './shared-system.ts';

const root = new URL('../../', import.meta.url).pathname;
const system = useSharedSystem();

/** Returns the messages in the first column of all tables: code with spaces in it. */
function quotedMessages(): string[] {
  const lines = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8').split('\n');
  const cells = lines.filter((line) => line.startsWith('| ')).map((line) => line.split(' | ')[0]!);
  return cells.flatMap((cell) => [...cell.matchAll(/`(?<code>[^`]* [^`]*)`/g)].map(({ groups }) => groups!['code']!));
}

const foldersOfSource = ['apps', 'libs', 'tools/start'];
const isSource = (file: string): boolean =>
  /\.(?:ts|mjs|lua|py)$/.test(file) && !/\.test\.|(?:^|\/)(?:node_modules|dist)\//.test(file);

function readSources(): string[] {
  return foldersOfSource.flatMap((folder) => {
    const files = readdirSync(join(root, folder), { encoding: 'utf8', recursive: true }).filter(isSource);
    return files.map((file) => readFileSync(join(root, folder, file), 'utf8'));
  });
}

/** Matches a message with anything in place of each `…`. */
function patternOf(quoted: string): RegExp {
  const parts = quoted.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(parts.join('[^]+'));
}

function settingsMessage(environment: Record<string, string>): string {
  try {
    loadConfig('api', environment);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('expected settings with an error');
}

const json = { 'Content-Type': 'application/json' };
const submissions: readonly RequestInit[] = [
  { headers: json, body: '{"promt": "a fox"}' },
  { headers: json, body: '{"prompt": "a fox", "size": "9000x9000"}' },
  { headers: json, body: '{"prompt": "a fox", "model": "flux"}' },
  { headers: json, body: '{"prompt": "a fox", "image": "http://example.com/fox.png"}' },
  { headers: json, body: '{"prompt": ' },
  { headers: json, body: JSON.stringify({ prompt: 'x'.repeat(2 ** 21) }) },
  { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'prompt=fox' },
  { headers: { ...json, Origin: 'https://other.example' }, body: '{"prompt": "a fox"}' },
  { body: formWith(new Blob(['not an image'])) },
];

function formWith(image: Blob): FormData {
  const form = new FormData();
  form.set('prompt', 'a fox');
  form.set('image', image);
  return form;
}

async function produceMessages(): Promise<string[]> {
  const refused = submissions.map((init) => fetch(`${system.url}/v1/predict`, { method: 'POST', ...init }));
  const chat = { method: 'POST', headers: json, body: '{"model": "emoji-sd", "messages": []}' };
  const others = [
    fetch(`${system.url}/v1/predict/unknown`),
    fetch(`${system.url}/v1/v1/models`),
    fetch(`${system.url}/v1/chat/completions`, chat),
  ];
  const responses = await Promise.all([...refused, ...others]);
  const answers = await Promise.all(responses.map(async (response) => (await response.json()) as { message: string }));
  return [
    ...answers.map(({ message }) => message),
    settingsMessage({ API_KEYS: 'alice:short' }),
    settingsMessage({ BATCH_MAXSIZE: '4' }),
    settingsMessage({ HOST: '0.0.0.0' }),
  ];
}

it('docs/troubleshooting.md: every quoted message is in the source, or is produced by its error', async () => {
  const sources = readSources();
  const produced = await produceMessages();
  const quoted = quotedMessages();
  const isInSource = (message: string): boolean => {
    const parts = message.split('…').filter((part) => part.trim().length > 3);
    return sources.some((source) => parts.every((part) => source.includes(part)));
  };

  expect(quoted.length).toBeGreaterThan(60);
  expect(
    quoted
      .filter((message) => !produced.some((text) => patternOf(message).test(text)))
      .filter((message) => !isInSource(message)),
  ).toEqual([]);
  // Each error that is produced here is on the page.
  expect(produced.filter((text) => !quoted.some((message) => patternOf(message).test(text)))).toEqual([]);
});
