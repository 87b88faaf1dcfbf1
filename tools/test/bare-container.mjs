// Runs commands in a container of our images' base image, with copies of this checkout in it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { lastCount } from './counts.mjs';
import { runAndRead } from './run-and-read.mjs';

export const bareImage = 'node:24-trixie-slim';

/** Fails unless the system that runs there returns an image. */
const fetchImageScript = `
  const response = await fetch('http://127.0.0.1:8080/v1/predict', {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'wait=60' },
    body: JSON.stringify({ prompt: 'a red apple on a white background' }),
  });
  const { status, request_id } = await response.json();
  const image = await fetch('http://127.0.0.1:8080/v1/predict/' + request_id + '/images/0');
  const bytes = new Uint8Array(await image.arrayBuffer());
  if (status !== 'succeeded' || bytes[1] !== 0x50) throw new Error(status + ', ' + bytes.length + ' bytes');`;

export class BareContainer {
  /** Debian packages that the commands have installed so far, by their output. */
  installed = [];
  #id;
  #root;

  constructor(id, root) {
    this.#id = id;
    this.#root = root;
  }

  static async start(root) {
    const { code, output } = await runAndRead('docker', ['run', '--detach', '--init', bareImage, 'sleep', 'infinity']);
    if (code !== 0) throw new Error(`no container: ${output}`);
    return new BareContainer(output.trim().split('\n').at(-1), root);
  }

  /** Copies the files that git would clone, with uncommitted changes, to a user's home. */
  async checkout(user) {
    const directory = user === 'root' ? '/root/darkroom' : `/home/${user}/darkroom`;
    const unpack = ['bash', '-c', `mkdir ${directory} && tar -x --no-same-owner -C ${directory}`];
    const list = spawn('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: this.#root });
    const pack = spawn('tar', ['-c', '--null', '--files-from=-'], { cwd: this.#root });
    const copy = spawn('docker', ['exec', '--interactive', '--user', user, this.#id, ...unpack], { stdio: 'pipe' });
    list.stdout.pipe(pack.stdin);
    pack.stdout.pipe(copy.stdin);
    const [code] = await once(copy, 'exit');
    if (code !== 0) throw new Error(`the checkout could not be copied: ${await text(copy.stderr)}`);
    return new BareCheckout(this, this.#id, user, directory);
  }

  async remove() {
    await runAndRead('docker', ['rm', '--force', '--volumes', this.#id]);
  }
}

class BareCheckout {
  #container;
  #exec;

  constructor(container, id, user, directory) {
    this.#container = container;
    this.#exec = ['exec', '--user', user, '--workdir', directory, '--env', 'CI=true', id];
  }

  /** Runs a command to its end and shows its output. */
  async run(command) {
    const result = await runAndRead('docker', [...this.#exec, ...command], { isShown: true });
    this.#note(result.output);
    return result;
  }

  /** Runs `npm start`, requests one image and sends SIGINT. */
  async startToImage() {
    const child = spawn('docker', [...this.#exec, 'npm', 'start'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    const ended = once(child, 'exit');
    try {
      await new Promise((resolve, reject) => {
        child.stdout.setEncoding('utf8').on('data', (chunk) => {
          process.stdout.write(chunk);
          output += chunk;
          if (output.includes('running at http')) resolve();
        });
        child.once('exit', () => reject(new Error('npm start ended')));
      });
      const { code, output: problem } = await runAndRead('docker', [
        ...this.#exec,
        'node',
        '--input-type=module',
        '--eval',
        fetchImageScript,
      ]);
      if (code !== 0) throw new Error(`no image: ${problem}`);
    } finally {
      this.#note(output);
      // Signal the launcher's own process: a signal to `docker exec` does not reach into the container.
      const interrupt = `for (const pid of require('fs').readdirSync('/proc')) try {
        if (/tools.start.mjs/.test(require('fs').readFileSync('/proc/' + pid + '/cmdline'))) process.kill(pid, 'SIGINT');
      } catch {}`;
      await runAndRead('docker', [...this.#exec, 'node', '--eval', interrupt]);
      await ended;
    }
    if (!output.includes('darkroom: stopped')) throw new Error('npm start did not stop cleanly');
  }

  /** Runs `npm test` with arguments for vitest. Returns its exit code and counts. */
  async test(args) {
    const { code, output } = await this.run(['npm', 'test', '--', ...args]);
    return { code, ...lastCount(output) };
  }

  #note(output) {
    for (const [, names] of output.matchAll(/^darkroom: .* The packages? (.*) (?:is|are) now installed/gm))
      this.#container.installed.push(...names.split(', '));
  }
}
