import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;

/**
 * Runs the sh and js blocks of a section unchanged, except for the server's address, in one directory that has only the
 * packages and the models.
 *
 * @param file for example `docs/requests.md`.
 * @param url of the server.
 */
export async function runSection(
  file: string,
  heading: string,
  url: string,
): Promise<{ outputs: string[]; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-document-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of ['node_modules', 'models']) await symlink(join(root, name), join(directory, name));
  const [, section = ''] = (await readFile(join(root, file), 'utf8')).split(`## ${heading}\n`);
  const outputs: string[] = [];
  for (const { groups } of section.split(/^## /m)[0]!.matchAll(/```(?<language>sh|js)\n(?<code>.*?)```/gs)) {
    const code = groups!['code']!.replaceAll('http://127.0.0.1:8080', url);
    // A clone of the repository is what this test runs.
    if (code.startsWith('git clone')) continue;
    const command = groups!['language'] === 'sh' ? ['sh', '-c'] : [process.execPath, '--input-type=module', '--eval'];
    const options = { cwd: directory, env: { PATH: process.env['PATH'] } };
    const { stdout } = await promisify(execFile)(command[0]!, [...command.slice(1), code], options);
    outputs.push(stdout);
  }
  return { outputs, directory };
}
