import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BaseService } from './service.ts';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Readiness } from '../metrics/readiness.ts';

export interface MetricsServerOptions {
  metrics: Metrics;
  readiness: Readiness;
  host: string;
  /** 0 takes any free one. */
  port: number;
  log: Logger;
}

type Answer = [status: number, body: string, headers?: Readonly<Record<string, string>>];

/** Serves `/metrics` for Prometheus, and `/live` and `/ready` for probes; not for clients. */
export class MetricsServer extends BaseService<MetricsServerOptions> {
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  /** URL of the server; undefined while it is not listening. */
  get url(): string | undefined {
    const address = this.#server.address() as AddressInfo | null;
    if (address === null) return undefined;
    return `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
  }

  protected override async onStart(): Promise<void> {
    const { host, port, log } = this.options;
    this.#server.listen(port, host);
    // `once` rejects if the port is in use.
    await once(this.#server, 'listening');
    log.info({ metrics_url: this.url }, 'serving metrics');
  }

  protected override async onStop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, body, headers = { 'Content-Type': 'text/plain; charset=utf-8' }] = await this.#answerTo(request);
    const length = { 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(status, { ...length, 'Cache-Control': 'no-store', ...headers }).end(body);
  }

  async #answerTo({ method, url = '/' }: IncomingMessage): Promise<Answer> {
    const { metrics, readiness, log } = this.options;
    const [path] = url.split('?');
    if (method !== 'GET' && method !== 'HEAD') return [405, 'GET only\n', { Allow: 'GET, HEAD' }];
    try {
      if (path === '/metrics') return [200, await metrics.expose(), { 'Content-Type': metrics.contentType }];
      if (path === '/live') return [200, 'live\n'];
      if (path === '/ready') return (await readiness.isReady()) ? [200, 'ready\n'] : [503, 'not ready\n'];
      return [404, 'Not found; see /metrics, /live and /ready.\n'];
    } catch (error) {
      log.error({ err: error, path }, 'could not answer a request for metrics');
      return [500, 'see the log\n'];
    }
  }
}
