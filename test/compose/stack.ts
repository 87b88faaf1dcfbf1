/** Runs docker-compose.yml as its users do, through the `docker` program, as a separate project per test file. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;

export type ServiceName = 'api' | 'balancer' | 'batch-former' | 'janitor' | 'redis' | 'webhook-sender' | 'worker';

export class Stack {
  readonly #project = `darkroom-test-${randomUUID().slice(0, 8)}`;

  /** Address of the balancer, on a free port. It changes when the balancer restarts. */
  url = '';

  /** Starts all services; resolves when all are healthy. `npm run test:compose` has built the images before. */
  async up(): Promise<void> {
    await this.#compose('up', '--detach', '--wait', '--no-build');
    this.url = `http://${(await this.#compose('port', 'balancer', '8080')).trim()}`;
  }

  /** Stops all services and removes their networks and volumes. */
  async down(): Promise<void> {
    await this.#compose('down', '--volumes', '--timeout', '25');
  }

  /** Sets the number of replicas per service; resolves when all are healthy. Surplus replicas stop gracefully. */
  async scale(replicas: Partial<Record<ServiceName, number>>): Promise<void> {
    const scales = Object.entries(replicas).flatMap(([service, count]) => ['--scale', `${service}=${count}`]);
    await this.#compose('up', '--detach', '--wait', '--no-build', '--no-recreate', '--timeout', '25', ...scales);
  }

  /** Returns the ids of the running containers of a service. */
  async containers(service: ServiceName): Promise<string[]> {
    return (await this.#compose('ps', '--quiet', service)).split('\n').filter((line) => line !== '');
  }

  /** Sends SIGKILL to a container, as the kernel does when memory runs out. */
  async kill(container: string): Promise<void> {
    await docker('kill', container);
  }

  /** Returns `/metrics` of a container, fetched from inside it. */
  async metrics(container: string): Promise<string> {
    const script = "fetch('http://127.0.0.1:9090/metrics').then((r) => r.text()).then((text) => console.log(text))";
    return docker('exec', container, 'node', '--eval', script);
  }

  inspect(container: string, format: string): Promise<string> {
    return docker('inspect', '--format', format, container);
  }

  /** Runs a program in a container; returns its stdout. @throws Error if it fails. */
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
  // DARKROOM_PORT=0 takes a free port, which avoids conflicts with running servers.
  const env = { ...process.env, DARKROOM_PORT: '0', COMPOSE_PROFILES: '' };
  const { stdout } = await run('docker', command, { cwd: root, env, maxBuffer: 2 ** 28 });
  return stdout;
}
