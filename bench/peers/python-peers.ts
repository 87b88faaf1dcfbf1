/** The model in Python: on three servers, on one of them with rows that step together, and in a bare loop. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  type ImageRequest,
  batchSize,
  clientsOf,
  freePort,
  modelDirectory,
  type Painted,
  type Peer,
  post,
  type RunningPeer,
  startProgram,
  type Started,
  threads,
  waitUntilReady,
} from './peer.ts';
import { pythonHome, pythonProgram } from './python-environment.ts';
import { firstRequest } from './scenes.ts';

const here = new URL('.', import.meta.url).pathname;

interface Server {
  name: string;
  /** Batch function of images.py. */
  paint: 'paint_groups' | 'paint_rows';
  program?: 'python' | 'bentoml';
  words: (port: number) => string[];
  /** Build the request body, and extract the PNG from the response. */
  toBody?: (request: ImageRequest) => object;
  read?: (response: Response) => Promise<Uint8Array>;
}

const servers: readonly Server[] = [
  { name: 'LitServe', paint: 'paint_groups', words: () => ['litserve_server.py'] },
  { name: 'LitServe, rows by hand', paint: 'paint_rows', words: () => ['litserve_server.py'] },
  {
    name: 'BentoML',
    paint: 'paint_groups',
    program: 'bentoml',
    words: (port) => ['serve', 'bentoml_server:Painter', '--host', '127.0.0.1', '--port', `${port}`],
    // BentoML batches lists.
    toBody: (request) => ({ requests: [request] }),
    read: async (response) => Buffer.from(((await response.json()) as string[])[0]!, 'base64'),
  },
  { name: 'Ray Serve', paint: 'paint_groups', words: () => ['ray_server.py'] },
];

export const pythonPeers: readonly Peer[] = [
  ...servers.map((server): Peer => {
    const batches = server.paint === 'paint_rows' ? 'rows' : 'groups';
    return { name: server.name, batches, start: () => startServer(server) };
  }),
  { name: 'bare Python loop', batches: 'joining rows', start: startLoop },
];

async function startServer({
  words,
  program = 'python',
  paint: batch,
  toBody,
  read = bytesOf,
}: Server): Promise<RunningPeer> {
  const port = await freePort();
  const python = startPython(program, words(port), { PORT: `${port}`, PAINT: batch });
  const paint = async (request: ImageRequest, leave?: AbortSignal): Promise<Uint8Array> =>
    read(await post(`http://127.0.0.1:${port}/predict`, toBody?.(request) ?? request, leave));
  await waitUntilReady(python, () => paint(firstRequest));
  return { ...python, paint, paintAll: clientsOf(paint) };
}

async function startLoop(): Promise<RunningPeer> {
  const python = startPython('python', ['bare_loop.py'], {});
  const lines = createInterface({ input: python.child.stdout! })[Symbol.asyncIterator]();
  const nextLine = async (): Promise<unknown> => {
    const { value, done = false } = await lines.next();
    if (done) throw new Error('bare_loop.py has ended');
    return JSON.parse(value as string);
  };
  await nextLine();
  const paintAll: RunningPeer['paintAll'] = async (requests, { inFlight, isBurst }): Promise<Painted> => {
    const job = { requests, at_once: Math.min(inFlight, batchSize), is_burst: isBurst };
    python.child.stdin!.write(`${JSON.stringify(job)}\n`);
    const { seconds, file } = (await nextLine()) as { seconds: number[]; file: string };
    return { seconds, png: Buffer.from(file, 'base64') };
  };
  return { ...python, paint: undefined, paintAll };
}

type Python = Started & Pick<RunningPeer, 'rowSteps' | 'pids' | 'stop'>;

function startPython(
  program: 'python' | 'bentoml',
  words: readonly string[],
  environment: Record<string, string>,
): Python {
  const scratch = mkdtempSync(join(tmpdir(), 'peers-'));
  const counter = join(scratch, 'steps');
  writeFileSync(counter, new Uint8Array(8));
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: pythonHome,
    PYTHONDONTWRITEBYTECODE: '1',
    RAY_TMPDIR: scratch,
    // Disable telemetry.
    RAY_USAGE_STATS_ENABLED: '0',
    BENTOML_DO_NOT_TRACK: 'true',
    MODEL_DIR: modelDirectory,
    MODEL_THREADS: `${threads}`,
    STEP_COUNTER: counter,
    ...environment,
  };
  const started = startProgram(pythonProgram(program), words, { cwd: here, env });
  if (words[0] !== 'bare_loop.py') started.child.stdout!.resume();
  return {
    ...started,
    rowSteps: async () => Number(readFileSync(counter).readBigUInt64LE()),
    async stop() {
      await started.stop();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}
