import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BaseService, type Logger } from '@darkroom/service';
import { createAdaptorServer } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { ServerCall } from '../http/api-env.ts';
import type { Api } from '../http/api-route.ts';

/** How long answers under way may take to finish when the process stops. */
export const drainMs = 5000;

/** Connections that wait to be taken. Readers that all come back at once are thousands; the kernel may allow fewer. */
const backlog = 16_384;
/** Proxies keep idle connections for 60 s: one that we closed before them would lose the request that comes just then. */
const keepAliveMs = 75_000;

export interface ApiServerOptions {
  api: Api;
  host: string;
  /** 0 takes any free one. */
  port: number;
  /** Aborted first when stopping. */
  draining: AbortController;
  log: Logger;
}

/** Listens until stopped; then takes no new connections, sends the readers of events elsewhere and finishes what it answers. */
export class ApiServer extends BaseService<ApiServerOptions> {
  #server: Server | undefined;
  #connections: ReturnType<typeof trackConnections> | undefined;

  /** Where it listens; undefined while it does not. */
  get url(): string | undefined {
    const address = this.#server?.address();
    if (address === undefined || address === null || typeof address === 'string') return undefined;
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}`;
  }

  protected override async onStart(): Promise<void> {
    const { api, host, port, log } = this.options;
    // Without serverOptions it is one of node:http.
    // The hostname is for requests that bring none (HTTP/1.0); it is in no answer.
    const server = createAdaptorServer({
      fetch: (request, { outgoing }) => answer(api, request, outgoing as ServerResponse),
      hostname: 'localhost',
    }) as Server;
    this.#server = server;
    this.#connections = trackConnections(server);
    server.keepAliveTimeout = keepAliveMs;
    // Counted from the same moment: it may not be over first.
    server.headersTimeout = keepAliveMs + 5000;
    server.listen({ port, host, backlog });
    // `once` rejects when the port is taken.
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

/** An answer that writes its own body is not the adaptor's any more. */
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
 * Node counts a connection that has not asked for anything yet as busy, and browsers and fetch keep such spares:
 * `server.close()` alone would wait for them.
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
    /** Closes all others, now and as their requests finish. */
    drain(): void {
      isDraining = true;
      for (const socket of open) if (!busy.has(socket)) socket.destroy();
    },
  };
}
