/** The programs of docs/text.md, run unchanged. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { caller } from './caller-model.ts';
import { useSharedSystem } from './shared-system.ts';

const root = new URL('../../', import.meta.url).pathname;

const system = useSharedSystem();
let document: string;
beforeAll(async () => {
  document = await readFile(join(root, 'docs/text.md'), 'utf8');
});

/** Returns the code blocks of one language below a heading. */
function programs(heading: string, language: string): string[] {
  const [, section = ''] = document.split(`${heading}\n`);
  const [body = ''] = section.split(/^##/m);
  return [...body.matchAll(new RegExp(`\`\`\`${language}\\n(?<code>.*?)\`\`\``, 'gs'))].map(
    ({ groups }) => groups!['code']!,
  );
}

/** Runs a program in a directory that has only the packages. */
async function run(command: string, args: readonly string[], program: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-text-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
  const code = program.replaceAll('http://127.0.0.1:8080', system.url).replaceAll('my-model', caller);
  const { stdout } = await promisify(execFile)(command, [...args, code], {
    cwd: directory,
    env: { PATH: process.env['PATH'] },
  });
  return stdout;
}

const node = (program: string): Promise<string> => run(process.execPath, ['--input-type=module', '--eval'], program);
const shell = (program: string): Promise<string> => run('sh', ['-c'], program);

const cold = /^an? .* background$/;

it('docs/text.md: curl commands', async () => {
  const commands = programs("## OpenAI's routes", 'sh');
  expect(commands).toHaveLength(3);
  const [chat, stream, completion] = await Promise.all(commands.map((command) => shell(command)));
  expect(JSON.parse(chat!)).toMatchObject({ choices: [{ message: { content: expect.stringMatching(cold) } }] });
  const frames = stream!.trim().split('\n\n');
  expect(frames.at(-1)).toBe('data: [DONE]');
  expect(JSON.parse(frames.at(-2)!.slice('data: '.length))).toMatchObject({
    choices: [],
    usage: { nfe: expect.any(Number) },
  });
  expect(JSON.parse(completion!)).toMatchObject({
    object: 'text_completion',
    choices: [{ logprobs: { text_offset: expect.any(Array) } }],
  });
});

it.each(['## Answers in a form', '## Tools'])(
  'docs/text.md: the commands of %s print what the page shows',
  async (heading) => {
    const commands = programs(heading, 'sh');
    const printed = await Promise.all(commands.map((command) => shell(command)));
    expect(printed.map((text) => `${text.trim()}\n`)).toEqual(programs(heading, 'text'));
    expect(commands.length).toBeGreaterThan(0);
  },
);

it('docs/text.md: OpenAI SDK with a schema and a tool', async () => {
  const [program] = programs('## Tools', 'js');
  expect(await node(program!)).toMatch(/^(cake|fox)\ndrawn in (red|pink)\n$/);
});

it('docs/text.md: OpenAI SDK', async () => {
  const [program] = programs('### openai (npm)', 'js');
  expect(await node(program!)).toMatch(
    /^a birthday cake on a pink background \d+ emoji-writer-\w{26}\na birthday cake on a pink background$/,
  );
});

it('docs/text.md: Vercel AI SDK', async () => {
  const [program] = programs('### Vercel AI SDK', 'js');
  const [text, streamed] = (await node(program!)).split('\n');
  expect(text).toMatch(cold);
  expect(streamed).toBe(text);
});

it('docs/text.md: LangChain', async () => {
  const [program] = programs('### LangChain', 'js');
  const [text, streamed] = (await node(program!)).split('\n');
  expect(text).toMatch(cold);
  expect(streamed).toBe(text);
});
