/** Starts a real HTTP server with scripted responses, which can break connections. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** The response to one request. */
export type Answer = (response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

export interface RecordedRequest {
  method: string;
  path: string;
  /** `Last-Event-ID`. */
  last: string | undefined;
  /** `Idempotency-Key`. */
  key: string | undefined;
  body: string;
}

export interface ScriptedServer {
  url: string;
  requests: RecordedRequest[];
  server: Server;
}

/**
 * Starts the server. It sends the answers in order; a request without an answer gets a 500, which clients do not retry.
 */
export async function openScriptedServer(answers: readonly Answer[]): Promise<ScriptedServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (text: Buffer) => (body += text.toString()));
    request.on('end', () => {
      const { 'last-event-id': last, 'idempotency-key': key } = request.headers as Record<string, string | undefined>;
      requests.push({ method: request.method!, path: request.url!, last, key, body });
      const answer =
        answers[requests.length - 1] ?? json(500, { error: { code: 'too_many', message: 'not in the script' } });
      void answer(response, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, server };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

export function errorAnswer(
  status: number,
  code: string,
  headers: Record<string, string> = {},
  param?: string,
): Answer {
  const message = `it is ${code}`;
  return json(status, { message, error: { message, type: 't', code, param: param ?? null } }, headers);
}

/** Sends nothing for so long; for a client with fake timers. */
export function silence(ms: number): Answer {
  return () => void vi.advanceTimersByTime(ms);
}

/** Sends the headers and half of the body, then nothing more. */
export function stalled(text: string): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
    response.write(text.slice(0, text.length / 2));
  };
}

/** Sends an HTML page, like a proxy. */
export function page(status: number): Answer {
  return (response) => void response.writeHead(status, { 'content-type': 'text/html' }).end('<html>');
}

/** Resets the connection before the first byte. */
export const reset: Answer = (response) => {
  response.socket!.resetAndDestroy();
};

export interface EventsOptions {
  /** `reset` or `hang` instead of a proper end. */
  ending?: 'end' | 'reset' | 'hang';
}

/** Sends a stream of events as raw text. */
export function events(text: string | Uint8Array, { ending = 'end' }: EventsOptions = {}): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.flushHeaders();
    response.write(text, () => {
      if (ending === 'end') response.end();
      if (ending === 'reset') response.socket!.resetAndDestroy();
    });
    if (text.length === 0 && ending === 'end') response.end();
  };
}

/** Returns one SSE message. */
export function frame(sequence: number, name: string, data: Record<string, unknown> = {}): string {
  const common = { request_id: 'tiny-1', timestamp: '2026-01-01T00:00:00.000Z' };
  return `id: ${sequence}-0\nevent: ${name}\ndata: ${JSON.stringify({ ...common, ...data })}\n\n`;
}

export const done = 'data: [DONE]\n\n';

export function imageInfo(index: number, bytes: Uint8Array): Record<string, unknown> {
  const url = `/v1/predict/tiny-1/images/${index}`;
  return { index, url, seed: 7 + index, width: 8, height: 8, content_type: 'image/png', bytes: bytes.length };
}

/** Returns an image's SSE messages, in chunks. */
export function chunks(first: number, index: number, image: Uint8Array, chunkBytes: number): string[] {
  const total = Math.ceil(image.length / chunkBytes);
  return Array.from({ length: total }, (_value, chunk) =>
    frame(first + chunk, 'image', {
      ...imageInfo(index, image),
      chunk_index: chunk,
      total_chunks: total,
      is_final: chunk === total - 1,
      b64: Buffer.from(image.subarray(chunk * chunkBytes, (chunk + 1) * chunkBytes)).toString('base64'),
    }),
  );
}

/** Sends an image's bytes. */
export function bytes(image: Uint8Array): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'image/png', 'content-length': image.length }).end(image);
  };
}
