// A container of the image that ours are built from, with copies of this checkout in it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { lastCount } from './counts.mjs';
import { runAndRead } from './run-and-read.mjs';

export const bareImage = 'node:24-trixie-slim';

/** Fails unless a picture comes out of the system that runs there. */
const askForPicture = `
  const response = await fetch('http://127.0.0.1:8080/v1/predict', {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'wait=60' },
    body: JSON.stringify({ prompt: 'a red apple on a white background' }),
  });
  const { status, request_id } = await response.json();
  const picture = await fetch('http://127.0.0.1:8080/v1/predict/' + request_id + '/images/0');
  const bytes = new Uint8Array(await picture.arrayBuffer());
  if (status !== 'succeeded' || bytes[1] !== 0x50) throw new Error(status + ', ' + bytes.length + ' bytes');`;

export class BareContainer {
  /** Debian packages that the commands have installed so far, as they said. */
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

  /** What git would give somebody who clones this, changes included, in the home of a user. */
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

  /** Runs a command to its end, its output shown. */
  async run(command) {
    const result = await runAndRead('docker', [...this.#exec, ...command], { isShown: true });
    this.#note(result.output);
    return result;
  }

  /** `npm start`, one picture, Ctrl-C. */
  async startToPicture() {
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
        askForPicture,
      ]);
      if (code !== 0) throw new Error(`no picture: ${problem}`);
    } finally {
      this.#note(output);
      // The launcher's own process: a signal to `docker exec` does not reach into the container.
      const interrupt = `for (const pid of require('fs').readdirSync('/proc')) try {
        if (/tools.start.mjs/.test(require('fs').readFileSync('/proc/' + pid + '/cmdline'))) process.kill(pid, 'SIGINT');
      } catch {}`;
      await runAndRead('docker', [...this.#exec, 'node', '--eval', interrupt]);
      await ended;
    }
    if (!output.includes('darkroom: stopped')) throw new Error('npm start did not stop in order');
  }

  /** `npm test` with arguments for vitest; what it counts. */
  async test(args) {
    const { code, output } = await this.run(['npm', 'test', '--', ...args]);
    return { code, ...lastCount(output) };
  }

  #note(output) {
    for (const [, names] of output.matchAll(/^darkroom: .* The packages? (.*) (?:is|are) now installed/gm))
      this.#container.installed.push(...names.split(', '));
  }
}
