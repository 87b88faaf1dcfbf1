// A minimal Redis client, for checks before any package is installed.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

/**
 * Sends one command and returns the first line of the reply, such as `+PONG`. Throws if the server cannot be reached.
 */
export async function askRedis(url, command, { timeoutMs = 3000 } = {}) {
  const { socket, username, password } = connectTo(url);
  const login = password === '' ? [] : [['AUTH', ...(username === '' ? [] : [username]), password]];
  const commands = [...login, command];
  try {
    return await new Promise((resolve, reject) => {
      let reply = '';
      socket.setTimeout(timeoutMs, () => reject(new Error('no answer')));
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was closed')));
      socket.on('data', (data) => {
        reply += data;
        const lines = reply.split('\r\n');
        if (lines.length > commands.length) resolve(lines[commands.length - 1]);
      });
      socket.write(commands.map(encode).join(''));
    });
  } finally {
    socket.destroy();
  }
}

/** Resolves once the server has loaded its data and answers. */
export async function untilRedisAnswers(url, signal) {
  for (;;) {
    const reply = await askRedis(url, ['PING']).catch(() => undefined);
    if (reply === '+PONG') return;
    await delay(50, undefined, { signal });
  }
}

function connectTo(url) {
  // The path of a Unix socket is used verbatim, as in libs/store.
  if (url.startsWith('unix://'))
    return { socket: connect({ path: url.slice('unix://'.length) }), username: '', password: '' };
  const { protocol, hostname, port, username, password } = new URL(url);
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  return {
    socket: protocol === 'rediss:' ? connectTls({ ...address, servername: address.host }) : connect(address),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

function encode(parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`;
}
