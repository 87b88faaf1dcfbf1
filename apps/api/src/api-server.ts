import { once } from 'node:events';
import { BaseService, type Logger } from '@darkroom/service';
import { createAdaptorServer, type ServerType } from '@hono/node-server';
import type { Api } from './api-route.ts';

export interface ApiServerOptions {
  api: Api;
  host: string;
  /** 0 takes any free one. */
  port: number;
  /** Aborted first when stopping. */
  draining: AbortController;
  log: Logger;
}

/** How long answers under way may take to finish when the process stops. */
const drainMs = 5000;

/** Listens until stopped; then takes no new connections, sends the readers of events elsewhere and finishes what it answers. */
export class ApiServer extends BaseService {
  readonly #options: ApiServerOptions;
  #server: ServerType | undefined;

  constructor(options: ApiServerOptions) {
    super();
    this.#options = options;
  }

  /** Where it listens; undefined while it does not. */
  get url(): string | undefined {
    const address = this.#server?.address();
    if (address === undefined || address === null || typeof address === 'string') return undefined;
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}`;
  }

  protected override async onStart(): Promise<void> {
    const { api, host, port, log } = this.#options;
    this.#server = createAdaptorServer({ fetch: api.fetch });
    this.#server.listen(port, host);
    // `once` rejects when the port is taken.
    await once(this.#server, 'listening');
    log.info({ url: this.url }, 'listening');
  }

  protected override async onStop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#options.draining.abort();
    if (server === undefined || !server.listening) return;
    const closed = new Promise((resolve) => server.close(resolve));
    const timer = setTimeout(() => 'closeAllConnections' in server && server.closeAllConnections(), drainMs);
    await closed;
    clearTimeout(timer);
  }
}
