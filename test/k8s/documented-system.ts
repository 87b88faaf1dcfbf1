/** Runs the commands of docs/kubernetes.md and returns the manifests that they build. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Manifest, parseManifests, readyTools } from './manifests.ts';

const root = new URL('../../', import.meta.url).pathname;
const page = readFileSync(join(root, 'docs/kubernetes.md'), 'utf8');

/** Returns the page's code blocks of a language, in order. */
export function blocksOf(language: 'sh' | 'yaml' | 'env'): string[] {
  const pattern = new RegExp(`\`\`\`${language}\\n(?<code>.*?)\`\`\``, 'gs');
  return [...page.matchAll(pattern)].map((match) => match.groups!['code']!);
}

export interface DocumentedSystem {
  /** The built manifests after each `kustomize build` of the page. */
  texts: readonly string[];
  manifests: readonly Manifest[];
  /** Standard output of the commands. */
  output: string;
  /** A partial checkout with `my-darkroom` in it. */
  directory: string;
  remove(): void;
}

/** Runs the page's commands, except those that need a cluster, in a copy of the files that they use. */
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
