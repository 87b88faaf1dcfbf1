import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BaseService, type Logger } from '@darkroom/service';
import { createAdaptorServer } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Api, ServerCall } from '../http/api-env.ts';

/** Time for open answers to finish when the process stops. */
export const drainMs = 5000;

/** Listen backlog: thousands of clients may reconnect at once. The kernel may allow fewer. */
const backlog = 16_384;
/** Longer than the 60 s of proxies: closing a connection before the proxy does can lose a request that it just sent. */
const keepAliveMs = 75_000;

export interface ApiServerOptions {
  api: Api;
  host: string;
  /** 0 selects a free port. */
  port: number;
  /** Aborted first on stop. */
  draining: AbortController;
  log: Logger;
}

/** HTTP server of the API. On stop it accepts no connections, ends event streams and finishes open answers. */
export class ApiServer extends BaseService<ApiServerOptions> {
  #server: Server | undefined;
  #connections: ReturnType<typeof trackConnections> | undefined;

  /** URL of the server; undefined while it does not listen. */
  get url(): string | undefined {
    const address = this.#server?.address();
    if (address === undefined || address === null || typeof address === 'string') return undefined;
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}`;
  }

  protected override async onStart(): Promise<void> {
    const { api, host, port, log } = this.options;
    // The cast is safe: without serverOptions this is a server of node:http.
    // `hostname` is used for requests without a Host header (HTTP/1.0); it appears in no answer.
    const server = createAdaptorServer({
      fetch: (request, { outgoing }) => answer(api, request, outgoing as ServerResponse),
      hostname: 'localhost',
    }) as Server;
    this.#server = server;
    this.#connections = trackConnections(server);
    server.keepAliveTimeout = keepAliveMs;
    // Counted from the same moment as keepAliveTimeout, so it must be longer.
    server.headersTimeout = keepAliveMs + 5000;
    server.listen({ port, host, backlog });
    // `once` rejects if the port is in use.
    await once(server, 'listening');
    log.info({ url: this.url }, 'listening');
  }

  protected override async onStop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.options.draining.abort();
    if (server === undefined || !server.listening) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.#connections?.drain();
    const timer = setTimeout(() => server.closeAllConnections(), drainMs);
    await closed;
    clearTimeout(timer);
  }
}

/** Runs the app. If the handler set `writeBody`, writes the head and leaves the body to it instead of the adaptor. */
async function answer(api: Api, request: Request, outgoing: ServerResponse): Promise<Response> {
  const call: ServerCall = { outgoing };
  const response = await api.fetch(request, call);
  if (call.writeBody === undefined) return response;
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (request.method === 'HEAD') outgoing.end();
  void call.writeBody();
  return RESPONSE_ALREADY_SENT;
}

/**
 * Tracks connections so that a drain can close idle ones. `server.close()` would wait for connections that have not
 * sent a request yet, which browsers and fetch keep in reserve.
 */
function trackConnections(server: Server) {
  const open = new Set<Socket>();
  const busy = new Set<Socket>();
  let isDraining = false;
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    busy.add(socket);
    response.once('close', () => {
      busy.delete(socket);
      if (isDraining) socket.destroySoon();
    });
  });
  return {
    /** Closes idle connections now, and busy ones when their answers finish. */
    drain(): void {
      isDraining = true;
      for (const socket of open) if (!busy.has(socket)) socket.destroy();
    },
  };
}
