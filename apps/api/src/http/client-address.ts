import type { ApiCall } from './api-env.ts';

/** Returns the IP address of the connection's peer (client or proxy); undefined without a server (tests). */
export function clientAddressOf(c: ApiCall): string | undefined {
  return c.env?.outgoing?.req.socket.remoteAddress;
}
