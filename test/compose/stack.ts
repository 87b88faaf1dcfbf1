/** docker-compose.yml as its users run it: a project of its own for one test file, driven through the `docker` program. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;

export type ServiceName = 'api' | 'balancer' | 'batch-former' | 'janitor' | 'redis' | 'webhook-sender' | 'worker';

export class Stack {
  readonly #project = `darkroom-test-${randomUUID().slice(0, 8)}`;

  /** Address of the balancer, on a port that was free. It changes when the balancer starts again. */
  url = '';

  /** Starts everything and resolves when all of it is healthy. The images are there: `npm run test:compose` builds first. */
  async up(): Promise<void> {
    await this.#compose('up', '--detach', '--wait', '--no-build');
    this.url = `http://${(await this.#compose('port', 'balancer', '8080')).trim()}`;
  }

  /** Ends everything, and removes its networks and volumes. */
  async down(): Promise<void> {
    await this.#compose('down', '--volumes', '--timeout', '25');
  }

  /** As many replicas of each, resolving when all of them are healthy. Those that go are stopped in order. */
  async scale(replicas: Partial<Record<ServiceName, number>>): Promise<void> {
    const scales = Object.entries(replicas).flatMap(([service, count]) => ['--scale', `${service}=${count}`]);
    await this.#compose('up', '--detach', '--wait', '--no-build', '--no-recreate', '--timeout', '25', ...scales);
  }

  /** The containers of a service that run now. */
  async containers(service: ServiceName): Promise<string[]> {
    return (await this.#compose('ps', '--quiet', service)).split('\n').filter((line) => line !== '');
  }

  /** SIGKILL from outside, as the kernel does to who runs out of memory. */
  async kill(container: string): Promise<void> {
    await docker('kill', container);
  }

  /** What a process of the stack exposes at `/metrics`, as seen from inside of its container. */
  async metrics(container: string): Promise<string> {
    const script = "fetch('http://127.0.0.1:9090/metrics').then((r) => r.text()).then((text) => console.log(text))";
    return docker('exec', container, 'node', '--eval', script);
  }

  inspect(container: string, format: string): Promise<string> {
    return docker('inspect', '--format', format, container);
  }

  /** Runs a program in a container; rejects when it fails. */
  exec(container: string, ...command: readonly string[]): Promise<string> {
    return docker('exec', container, ...command);
  }

  logs(): Promise<string> {
    return this.#compose('logs', '--no-color', '--no-log-prefix');
  }

  #compose(...command: readonly string[]): Promise<string> {
    return docker('compose', '--project-name', this.#project, '--progress', 'quiet', ...command);
  }
}

async function docker(...command: readonly string[]): Promise<string> {
  // DARKROOM_PORT=0 takes a free port, so that nothing that runs here already is in the way.
  const env = { ...process.env, DARKROOM_PORT: '0', COMPOSE_PROFILES: '' };
  const { stdout } = await run('docker', command, { cwd: root, env, maxBuffer: 2 ** 28 });
  return stdout;
}
