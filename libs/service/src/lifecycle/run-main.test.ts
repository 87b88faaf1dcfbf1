/** Real processes, because signals, exit codes and IPC are tested. They run the built package (`npm run build`). */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';

interface StartedApp {
  child: ChildProcess;
  /** Resolves with the first IPC message. */
  ready: Promise<unknown>;
  /** Exit code, signal and all output. */
  end: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
}

function startApp(behaviour: string, environment: Record<string, string> = {}, flags: string[] = []): StartedApp {
  const child = fork(join(import.meta.dirname, '__fixtures__/app.mjs'), flags, {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], BEHAVIOUR: behaviour, ...environment },
    execArgv: [],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('the child was not given pipes');
  const end = Promise.all([once(child, 'exit'), text(stdout), text(stderr)]).then(([[code, signal], out, error]) => ({
    code,
    signal,
    stdout: out,
    stderr: error,
  }));
  return { child, ready: once(child, 'message').then(([message]) => message), end };
}

async function twoFreePorts(): Promise<number> {
  for (;;) {
    const first = createServer().listen(0, '127.0.0.1');
    await once(first, 'listening');
    const { port } = first.address() as AddressInfo;
    const second = createServer().listen(port + 1, '127.0.0.1');
    const isFree = await once(second, 'listening').then(
      () => true,
      () => false,
    );
    for (const server of [first, second]) server.close();
    if (isFree) return port;
  }
}

/** Waits for a text on standard output of the running process. */
async function waitForOutput(child: ChildProcess, wanted: string): Promise<void> {
  let seen = '';
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (data: Buffer) => {
      seen += data.toString();
      if (seen.includes(wanted)) resolve();
    });
  });
}

describe('runMain', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('reports ready, stops once on %s and exits with 0', async (signal) => {
    const { child, ready, end } = startApp('behave');
    expect(await ready).toBe('ready');
    child.kill(signal);
    const { code, stdout } = await end;
    expect(code).toBe(0);
    expect(stdout.split('stop was called')).toHaveLength(2);
    expect(stdout).toContain('"app":"janitor"');
  });

  it('reports ready when all apps of the process are, and exits when all have stopped', async () => {
    const { child, ready, end } = startApp('behave', { SHARED: '1' });
    const hasStarted = waitForOutput(child, 'the former has started');
    await ready;
    await hasStarted;
    child.kill('SIGTERM');
    const { code, stdout } = await end;
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    const at = (text: string) => lines.findIndex((line) => line.includes(text));
    expect(at('stop was called')).toBeLessThan(at('the former has stopped'));
    expect(stdout.split('"msg":"stopping"')).toHaveLength(2);
    expect(stdout.match(/"msg":"stopped"/g)).toHaveLength(2);
  });

  it('serves the metrics of apps in one process on consecutive ports', async () => {
    const port = await twoFreePorts();
    const { ready } = startApp('behave', { SHARED: '1', METRICS_PORT: String(port) });
    await ready;
    const pages = await Promise.all([port, port + 1].map((at) => fetch(`http://127.0.0.1:${at}/metrics`)));
    const [first, second] = await Promise.all(pages.map((page) => page.text()));
    expect(first).toContain('process_cpu_seconds_total{app="janitor"}');
    expect(second).toContain('app="batch-former"');
    expect(second).not.toContain('process_cpu_seconds_total');
  });

  it('stops when its supervisor exits', async () => {
    const { child, ready, end } = startApp('behave');
    await ready;
    child.disconnect();
    expect(await end).toMatchObject({ code: 0, stdout: expect.stringContaining('supervisor exited') });
  });

  it('stops when its supervisor exited before it could listen for that', async () => {
    const gone = encodeURIComponent('await new Promise((resolve) => process.once("disconnect", resolve));');
    const { child, end } = startApp('behave', { NODE_OPTIONS: `--import=data:text/javascript,${gone}` });
    child.disconnect();
    expect(await end).toMatchObject({ code: 0, stdout: expect.stringContaining('supervisor exited') });
  });

  it('exits at once on a second signal', async () => {
    const { child, ready, end } = startApp('never-stop');
    await ready;
    const stopCalled = waitForOutput(child, 'stop was called');
    child.kill('SIGINT');
    await stopCalled;
    child.kill('SIGINT');
    expect(await end).toMatchObject({ code: 130 });
  });

  it('exits when a stop exceeds its timeout', async () => {
    const { child, ready, end } = startApp('stop-slowly');
    await ready;
    child.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 1, stdout: expect.stringContaining('did not stop in time') });
  });

  it.each(['throw-later', 'reject-later'])('logs an uncaught error and exits with 1 (%s)', async (how) => {
    expect(await startApp(how).end).toMatchObject({ code: 1, stdout: expect.stringContaining('nobody caught this') });
  });

  it('exits with 1 when it cannot start', async () => {
    expect(await startApp('fail-to-start').end).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('no such luck'),
    });
  });

  it('exits with 1 when the port of its metrics is in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    expect(await startApp('behave', { METRICS_PORT: String(port) }).end).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('EADDRINUSE'),
    });
  });

  it('serves metrics from before its start until after its stop, and is ready in between', async () => {
    const { child, ready } = startApp('never-stop', { METRICS_PORT: '0' });
    const lines = createInterface({ input: child.stdout! });
    const [line] = (await once(lines, 'line')) as [string];
    const { metrics_url: url } = JSON.parse(line) as { metrics_url: string };
    await ready;
    expect((await fetch(`${url}/ready`)).status).toBe(200);
    const stopping = waitForOutput(child, 'stop was called');
    child.kill('SIGTERM');
    await stopping;
    expect([(await fetch(`${url}/ready`)).status, (await fetch(`${url}/live`)).status]).toEqual([503, 200]);
  });

  it('exits with 78 and reports every problem when settings are invalid', async () => {
    const { code, stderr } = await startApp('behave', { WORKER_TTL_MS: 'soon', LOG_LEVEL: 'loud' }).end;
    expect(code).toBe(78);
    expect(stderr).toMatch(/LOG_LEVEL is "loud".*\n.*WORKER_TTL_MS is "soon"/);
  });

  it('accepts flags, which override the environment, and exits with 78 for an unknown flag', async () => {
    const environment = { WORKER_TTL_MS: '4000' };
    const { child, end } = startApp('behave', environment, ['--worker-ttl-ms', '5000', '--log-level=info']);
    await waitForOutput(child, '"ttl":5000');
    child.kill('SIGTERM');
    expect((await end).code).toBe(0);
    const { code, stderr } = await startApp('behave', environment, ['--worker-tttl-ms', '5000']).end;
    expect([code, stderr]).toEqual([78, expect.stringContaining('did you mean --worker-ttl-ms?')]);
  });

  it.each([
    ['--help', /^node apps\/janitor\/dist\/main\.js \[flags\]\n[^]*--worker-ttl-ms, WORKER_TTL_MS\n/],
    ['--version', /^\d+\.\d+\.\d+\n$/],
    ['--print-config', /^WORKER_TTL_MS +4000 +environment$/m],
  ])('answers %s and does nothing else', async (flag, answer) => {
    const { code, stdout } = await startApp('behave', { WORKER_TTL_MS: '4000' }, [flag]).end;
    expect([code, stdout]).toEqual([0, expect.stringMatching(answer)]);
    expect(stdout).not.toContain('built');
  });
});
