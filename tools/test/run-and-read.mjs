import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Runs a program to its end. Returns its exit code and output; `isShown` also prints the output. */
export async function runAndRead(file, args, { cwd, env, isShown = false } = {}) {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
      if (isShown) process.stdout.write(chunk);
    });
  const [code] = await once(child, 'close');
  return { code, output };
}
