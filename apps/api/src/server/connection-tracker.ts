import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Knows which connections have a request under way. */
export type ConnectionTracker = ReturnType<typeof trackConnections>;

/**
 * Node counts a connection that has not asked for anything yet as busy, and browsers and fetch keep such spares:
 * `server.close()` alone would wait for them.
 */
export function trackConnections(server: Server) {
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
