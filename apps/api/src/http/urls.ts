import { signLinks, type SignLinksOptions } from '@darkroom/store';
import type { Context } from 'hono';
import type { AskStore } from '../server/store-guard.ts';

/** Where a request is found. Paths, not whole URLs: only the client knows under which name it reached us. */
export function requestUrls(id: string): { self: string; events: string; cancel: string } {
  const self = `/v1/predict/${id}`;
  return { self, events: `${self}/events`, cancel: self };
}

/**
 * A path of ours as a whole URL, under the name by which the client reached us: that of the proxy in front where it says
 * one (`X-Forwarded-Proto`, `X-Forwarded-Host`), or of the request's own. It goes back to whoever sent the headers and
 * to nobody else.
 */
export function absoluteUrl(c: Context, path: string): string {
  const own = new URL(c.req.url);
  const protocol = firstOf(c.req.header('x-forwarded-proto'));
  const host = firstOf(c.req.header('x-forwarded-host'));
  const scheme = protocol === 'http' || protocol === 'https' ? `${protocol}:` : own.protocol;
  const origin = `${scheme}//${host !== undefined && /^[\w.:[\]-]+$/.test(host) ? host : own.host}`;
  return new URL(path, URL.canParse(origin) ? origin : own).href;
}

/** What urls of pictures are in an answer to their owner: links that open them without the key, where one is needed. */
export function pictureLinks(askStore: AskStore, options: SignLinksOptions): Promise<(path: string) => string> {
  return askStore((store) => signLinks(store, options));
}

/** For answers that hold such URLs: another client may have come by another name. */
export const noStore = { 'Cache-Control': 'no-store' };

/** Every proxy on the way adds its own. */
function firstOf(header: string | undefined): string | undefined {
  return header?.split(',')[0]?.trim();
}
