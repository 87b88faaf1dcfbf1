import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { answerStaticText } from '../http/answer-text.ts';
import type { ApiCall } from '../http/api-env.ts';

const sources: Readonly<Record<string, string>> = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

/** Returns security headers of pages: the CSP allows only this server, and the sources in `more`. */
export function pageHeaders(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const policy = Object.entries({ ...sources, ...more }).map(([directive, value]) => `${directive} ${value}`);
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  };
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Answers with a file; undefined if it does not exist or has an unknown type. */
export async function pageFile(
  c: ApiCall,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response | undefined> {
  const type = types[extname(path)];
  if (type === undefined) return undefined;
  try {
    const data = await readFile(path);
    const all = { ...headers, 'Content-Type': type };
    if (type === 'image/png') return c.body(new Uint8Array(data), 200, all);
    return await answerStaticText(c, data, all);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
