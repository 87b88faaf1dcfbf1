/**
 * Fake Hugging Face hub with one repository, and the CDN for its large files: the routes, headers and responses of
 * huggingface.co over real sockets.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeFile {
  content: Buffer;
  /** Large files are on the CDN and identified by SHA-256; others by git's blob hash. */
  isLarge: boolean;
  digest: string;
}

export function fakeFile(bytes: Buffer | string, isLarge: boolean): FakeFile {
  const content = Buffer.from(bytes);
  return { content, isLarge, digest: isLarge ? sha256(content) : gitDigest(content) };
}

/** Failure of one response. */
export type Fault =
  | { kind: 'break'; afterBytes: number }
  | { kind: 'stall'; afterBytes: number }
  | { kind: 'status'; status: number; headers?: Record<string, string> }
  | { kind: 'other bytes' }
  | { kind: 'ignore range' };

export interface SeenRequest {
  server: 'hub' | 'cdn';
  path: string;
  range: string | undefined;
  authorization: string | undefined;
}

const pageSize = 5;

export class FakeHub implements AsyncDisposable {
  readonly repo = 'somebody/Tiny_Model';
  commit = 'a'.repeat(40);
  /** Token required to read the repository; none if undefined. */
  token: string | undefined;
  isGated = false;
  files = new Map<string, FakeFile>();
  readonly seen: SeenRequest[] = [];
  readonly #faults: { path: string; fault: Fault }[] = [];
  #endpoint = '';
  readonly #hub: Server;
  readonly #cdn: Server;

  private constructor() {
    this.#hub = createServer((request, response) => this.#answerHub(request, response));
    this.#cdn = createServer((request, response) => this.#answerCdn(request, response));
  }

  static async start(): Promise<FakeHub> {
    const hub = new FakeHub();
    for (const server of [hub.#hub, hub.#cdn]) await once(server.listen(0, '127.0.0.1'), 'listening');
    hub.#endpoint = urlOf(hub.#hub);
    return hub;
  }

  /** URL, also after it has been stopped. */
  get endpoint(): string {
    return this.#endpoint;
  }

  put(path: string, content: Buffer | string, isLarge = false): void {
    this.files.set(path, fakeFile(content, isLarge));
  }

  /** Injects a fault into the next response for a path with this suffix. */
  failNext(path: string, fault: Fault): void {
    this.#faults.push({ path, fault });
  }

  /** Paths of downloads from the hub, in order of the requests. */
  get downloads(): string[] {
    return this.seen.filter(({ server }) => server === 'hub').flatMap(({ path }) => path.split(`/resolve/`)[1] ?? []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  #answerHub(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, this.endpoint);
    const path = decodeURIComponent(url.pathname);
    this.#see('hub', path, request);
    if (this.#failed(path, response)) return;
    const api = `/api/models/${this.repo}/`;
    const files = `/${this.repo}/resolve/${this.commit}/`;
    if (!path.includes(this.repo)) return refuse(response, 401, 'RepoNotFound');
    if (this.isGated && !path.startsWith(api)) return refuse(response, 403, 'GatedRepo');
    if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      return refuse(response, 401, 'RepoNotFound');
    }
    if (path.startsWith(`${api}revision/`)) return this.#answerRevision(path.slice(api.length + 9), response);
    if (path === `${api}tree/${this.commit}`) return this.#answerTree(url, response);
    const file = path.startsWith(files) ? this.files.get(path.slice(files.length)) : undefined;
    if (file === undefined) return refuse(response, 404, 'EntryNotFound');
    if (!file.isLarge) return this.#sendFile(file, path, request, response);
    response.writeHead(302, { location: `${urlOf(this.#cdn)}${url.pathname}`, 'x-linked-size': file.content.length });
    response.end();
  }

  #answerRevision(revision: string, response: ServerResponse): void {
    if (!['main', 'onnx', this.commit].includes(revision)) return refuse(response, 404, 'RevisionNotFound');
    const info = { _id: '1', id: this.repo, private: false, gated: this.isGated, likes: 0, downloads: 0 };
    sendJson(response, { ...info, lastModified: '2026-11-01T00:00:00.000Z', sha: this.commit });
  }

  /** Responds with a few files and folders per page. */
  #answerTree(url: URL, response: ServerResponse): void {
    const start = Number(url.searchParams.get('cursor') ?? 0);
    const folders = new Set([...this.files.keys()].flatMap((path) => path.split('/').slice(0, -1)));
    const entries = [
      ...[...folders].map((path) => ({ type: 'directory', oid: '0', size: 0, path })),
      ...[...this.files].map(([path, { content, isLarge, digest }]) => ({
        type: 'file',
        path,
        size: content.length,
        oid: isLarge ? '0'.repeat(40) : digest,
        ...(isLarge && {
          lfs: { oid: digest, size: content.length, pointerSize: 130 },
          xetHash: '0'.repeat(64),
        }),
      })),
    ];
    url.searchParams.set('cursor', String(start + pageSize));
    const isLast = start + pageSize >= entries.length;
    sendJson(response, entries.slice(start, start + pageSize), isLast ? {} : { link: `<${url.href}>; rel="next"` });
  }

  #answerCdn(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url!);
    this.#see('cdn', path, request);
    if (this.#failed(path, response)) return;
    const file = this.files.get(path.split(`/resolve/${this.commit}/`)[1] ?? '');
    if (file === undefined) return refuse(response, 404, 'EntryNotFound');
    // S3 refuses requests with two kinds of credentials.
    if (request.headers.authorization !== undefined) return refuse(response, 400, 'InvalidArgument');
    this.#sendFile(file, path, request, response);
  }

  #sendFile(file: FakeFile, path: string, request: IncomingMessage, response: ServerResponse): void {
    const fault = this.#takeFault(path);
    const range = fault?.kind === 'ignore range' ? undefined : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const start = Number(range?.[1] ?? 0);
    const end = range?.[2] ? Number(range[2]) + 1 : file.content.length;
    const content = Buffer.from(file.content.subarray(start, end));
    if (fault?.kind === 'other bytes') content[content.length - 1]! ^= 1;
    const contentRange = { 'content-range': `bytes ${start}-${end - 1}/${file.content.length}` };
    response.writeHead(range ? 206 : 200, {
      'content-length': content.length,
      'accept-ranges': 'bytes',
      etag: `"${file.digest}"`,
      ...(range && contentRange),
    });
    if (fault?.kind !== 'break' && fault?.kind !== 'stall') return void response.end(content);
    response.write(content.subarray(0, fault.afterBytes), () => {
      if (fault.kind === 'break') response.destroy();
    });
  }

  #see(server: 'hub' | 'cdn', path: string, { headers }: IncomingMessage): void {
    this.seen.push({ server, path, range: headers.range, authorization: headers.authorization });
  }

  #takeFault(path: string): Fault | undefined {
    const at = this.#faults.findIndex((fault) => path.endsWith(fault.path));
    return at < 0 ? undefined : this.#faults.splice(at, 1)[0]!.fault;
  }

  /** Responds with the status of a pending status fault, if there is one. */
  #failed(path: string, response: ServerResponse): boolean {
    const next = this.#faults.find((fault) => path.endsWith(fault.path));
    if (next?.fault.kind !== 'status') return false;
    this.#takeFault(path);
    response.writeHead(next.fault.status, next.fault.headers).end('no');
    return true;
  }
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'x-error-code': code, 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: code }));
}

function sendJson(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function gitDigest(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}
