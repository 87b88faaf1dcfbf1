import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from './metrics.ts';
import type { Readiness } from './readiness.ts';
import { BaseService } from '../lifecycle/service.ts';

export interface MetricsServerOptions {
  metrics: Metrics;
  readiness: Readiness;
  host: string;
  /** 0 takes any free one. */
  port: number;
  log: Logger;
}

/** For those who watch a process: `/metrics` for Prometheus, `/live` and `/ready` for probes. Never for clients. */
export class MetricsServer extends BaseService {
  readonly #options: MetricsServerOptions;
  #server: Server | undefined;

  constructor(options: MetricsServerOptions) {
    super();
    this.#options = options;
  }

  /** Where it listens; undefined while it does not. */
  get url(): string | undefined {
    const address = this.#server?.address();
    if (address === undefined || address === null || typeof address === 'string') return undefined;
    return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
  }

  protected override async onStart(): Promise<void> {
    const { host, port, log } = this.#options;
    const server = createServer((request, response) => void this.#answer(request, response));
    this.#server = server;
    server.listen(port, host);
    // `once` rejects when the port is taken.
    await once(server, 'listening');
    log.info({ metrics_url: this.url }, 'metrics');
  }

  protected override async onStop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined || !server.listening) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  async #answer({ method, url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics, readiness, log } = this.#options;
    const [path] = url.split('?');
    if (method !== 'GET' && method !== 'HEAD') return end(response, 405, 'GET only\n', { Allow: 'GET, HEAD' });
    try {
      if (path === '/metrics') end(response, 200, await metrics.expose(), { 'Content-Type': metrics.contentType });
      else if (path === '/live') end(response, 200, 'live\n');
      else if (path === '/ready') await answerReady(response, readiness);
      else end(response, 404, 'Here are /metrics, /live and /ready.\n');
    } catch (error) {
      log.error({ err: error, path }, 'could not answer');
      end(response, 500, 'see the log\n');
    }
  }
}

async function answerReady(response: ServerResponse, readiness: Readiness): Promise<void> {
  if (await readiness.isReady()) end(response, 200, 'ready\n');
  else end(response, 503, 'not ready\n');
}

function end(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = { 'Content-Type': 'text/plain; charset=utf-8' },
): void {
  response.writeHead(status, { 'Content-Length': Buffer.byteLength(body), 'Cache-Control': 'no-store', ...headers });
  response.end(body);
}
