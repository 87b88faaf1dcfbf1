/** The image that holds the whole system, run as its users do: `docker run -p 8080:8080 darkroom`. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { createClient } from '@darkroom/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { postJson } from '../e2e/client.ts';

const root = new URL('../../', import.meta.url).pathname;
const name = `darkroom-test-${randomUUID().slice(0, 8)}`;
const buildMs = 900_000;

async function docker(...command: readonly string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('docker', command, { cwd: root, maxBuffer: 2 ** 28 });
  return command[0] === 'logs' ? stdout + stderr : stdout.trim();
}

/** Starts a container on the volume. Resolves with the URL and the key that it prints once it serves. */
async function start(): Promise<{ url: string; key: string }> {
  const hardened = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
  const place = ['--publish', '127.0.0.1::8080', '--volume', `${name}:/data`];
  await docker('run', '--detach', '--name', name, ...place, ...hardened, name);
  await expect
    .poll(() => docker('logs', name), { timeout: 120_000, interval: 500 })
    .toContain('which the page asks for');
  const [, key] = /which the page asks for: (\S+)/.exec(await docker('logs', name))!;
  return { url: `http://${await docker('port', name, '8080')}`, key: key! };
}

/** Stops and removes the container, but not its volume. Returns its exit code and its last line. */
async function stop(): Promise<{ code: string; lastLine: string | undefined }> {
  await docker('stop', '--time', '25', name);
  const code = await docker('inspect', '--format', '{{.State.ExitCode}}', name);
  const lastLine = (await docker('logs', name)).trimEnd().split('\n').at(-1);
  await docker('rm', name);
  return { code, lastLine };
}

// The last target of the Dockerfile.
beforeAll(() => docker('build', '--quiet', '--tag', name, '.'), buildMs);
afterAll(async () => {
  await docker('rm', '--force', name);
  await docker('volume', 'rm', '--force', name);
  await docker('rmi', name);
});

/** Resolves with a text that follows a schema. Its grammar needs WebAssembly, which the image must contain. */
async function writeBySchema(url: string, headers: Record<string, string>): Promise<string> {
  const schema = { type: 'object', properties: { dish: { enum: ['cake'] } }, required: ['dish'] };
  const response = await postJson(
    `${url}/v1/chat/completions`,
    {
      model: 'emoji-writer',
      messages: [{ role: 'user', content: 'something sweet for a birthday party' }],
      response_format: { type: 'json_schema', json_schema: { name: 'dish', schema } },
    },
    headers,
  );
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
}

it('draws an image for holders of the printed key only, and keeps key and results in its volume', async () => {
  const { url, key } = await start();
  const body = { prompt: 'a red apple on a white background', num_inference_steps: 4 };
  await expect(createClient({ baseUrl: url }).submit(body)).rejects.toMatchObject({ status: 401 });

  const client = createClient({ baseUrl: url, apiKey: key });
  const { request_id: id } = await client.submit(body);
  const { images } = await client.wait<'image'>(id);
  const authorization = `Bearer ${key}`;
  const imageUrl = new URL(images[0]!.url, url);
  const image = new Uint8Array(await (await fetch(imageUrl, { headers: { authorization } })).arrayBuffer());
  expect([...image.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
  expect(await writeBySchema(url, { authorization })).toContain('"cake"');
  expect(await docker('exec', name, 'id', '--user')).toBe('1000');
  await expect
    .poll(() => docker('inspect', '--format', '{{.State.Health.Status}}', name), { timeout: 60_000 })
    .toBe('healthy');
  expect(await stop()).toEqual({ code: '0', lastLine: 'darkroom: stopped' });

  const again = await start();
  expect(again.key).toBe(key);
  const stored = await fetch(new URL(imageUrl.pathname, again.url), { headers: { authorization } });
  expect(new Uint8Array(await stored.arrayBuffer())).toEqual(image);
  expect(await stop()).toEqual({ code: '0', lastLine: 'darkroom: stopped' });
});
