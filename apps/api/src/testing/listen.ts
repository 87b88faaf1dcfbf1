import { createLogger } from '@darkroom/service';
import { onTestFinished } from 'vitest';
import { ApiServer } from '../server/api-server.ts';
import type { TestApi } from './test-api.ts';

/** Serves a test API on a free port until the test ends. */
export async function listen(test: TestApi): Promise<{ server: ApiServer; url: string }> {
  const log = createLogger({ app: 'api', stream: { write: (line) => void test.lines.push(line) } });
  const server = new ApiServer({ api: test.api, host: '127.0.0.1', port: 0, draining: test.draining, log });
  await server.start();
  onTestFinished(() => server.stop());
  return { server, url: server.url! };
}
