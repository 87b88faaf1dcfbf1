import { expect, it, onTestFinished, vi } from 'vitest';
import { type Connection, watchedFetch } from './watched-fetch.ts';

it('counts the refusal of a new request as a response of a working server', async () => {
  onTestFinished(() => void vi.unstubAllGlobals());
  const answers = [
    () => Promise.reject(new TypeError('away')),
    () => Promise.resolve(new Response('', { status: 503 })),
  ];
  vi.stubGlobal('fetch', () => answers.shift()!());
  const reports: Connection[] = [];
  const fetch = watchedFetch((connection) => reports.push(connection));
  const send = (): Promise<Response> => fetch('http://darkroom/v1/predict', { method: 'POST' });
  await expect(send()).rejects.toThrow('away');
  expect((await send()).status).toBe(503);
  expect(reports).toEqual(['unreachable', 'good']);
});
