/** What docs/kubernetes.md has people write, written as it says. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Manifest, parseManifests, readyTools } from './manifests.ts';

const root = new URL('../../', import.meta.url).pathname;
const page = readFileSync(join(root, 'docs/kubernetes.md'), 'utf8');

/** The page's blocks of a language, in order. */
export function blocksOf(language: 'sh' | 'yaml' | 'env'): string[] {
  const pattern = new RegExp(`\`\`\`${language}\\n(?<code>.*?)\`\`\``, 'gs');
  return [...page.matchAll(pattern)].map((match) => match.groups!['code']!);
}

export interface DocumentedSystem {
  /** As it was built after the first, the second, … time that the page says so. */
  texts: readonly string[];
  manifests: readonly Manifest[];
  /** What the commands said. */
  output: string;
  /** A checkout with `my-darkroom` in it. */
  directory: string;
  remove(): void;
}

/** Runs all commands of the page but those that need a cluster, in a copy of what they need. */
export async function writeDocumentedSystem(): Promise<DocumentedSystem> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-k8s-'));
  cpSync(join(root, 'k8s'), join(directory, 'k8s'), { recursive: true });
  mkdirSync(join(directory, 'docs'));
  cpSync(join(root, 'docs/redis-users.acl'), join(directory, 'docs/redis-users.acl'));
  const env = { ...process.env, PATH: `${dirname(readyTools().kustomize)}${delimiter}${process.env['PATH']}` };
  const texts: string[] = [];
  let output = '';
  for (const code of blocksOf('sh').filter((block) => !block.includes('kubectl'))) {
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', code], { cwd: directory, env });
    output += stdout;
    if (code.includes('kustomize build')) texts.push(readFileSync(join(directory, 'my-darkroom.yaml'), 'utf8'));
  }
  return {
    texts,
    manifests: parseManifests(texts.at(-1)!),
    output,
    directory,
    remove: () => rmSync(directory, { recursive: true }),
  };
}
