import { createServer } from 'node:net';
import { startCommand } from './installation.mjs';
import { freePort } from './redis-settings.mjs';
import { SetupError } from './say.mjs';

/**
 * Checks that the API's port is free. For port 0 picks a port, so that the URL stays the same when the API restarts.
 */
export async function chooseAddress({ host, port }) {
  if (port !== 0) await checkPort(host, port);
  const chosen = port === 0 ? await freePort(host) : port;
  // On this machine, a server on all addresses is reached at the loopback address.
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host);
  return { port: chosen, url: `http://${reachable}:${chosen}` };
}

function checkPort(host, port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => reject(new SetupError(explain(error, host, port))));
    server.listen(port, host, () => server.close(resolve));
  });
}

function explain({ code, message }, host, port) {
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is in use. Choose another: PORT=${port + 1} ${startCommand} (0 picks a free one).`;
  if (code === 'EACCES') return `Port ${port} needs privileges. Choose one from 1024 up: PORT=8080 ${startCommand}.`;
  return `The API cannot listen on ${host}:${port}: ${message}`;
}
