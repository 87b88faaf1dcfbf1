/**
 * Tools that build and check the manifests, at fixed versions in a directory of their own: kustomize and kubeconform by
 * `go install`, and the schemas that Kubernetes, KEDA and the Gateway API publish.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeCustomSchemas, writeKubernetesSchemas } from './kubernetes-schemas.ts';

const versions = {
  kustomize: '5.8.2',
  kubeconform: '0.8.0',
  keda: '2.21.0',
  gatewayApi: '1.6.3',
  // Contains the schemas of all these Kubernetes versions; named after the newest.
  kubernetesValidate: '1.37.0',
};
/** The oldest maintained version of Kubernetes, and the newest. */
export const kubernetesVersions = ['1.35.0', '1.37.0'] as const;

const home = new URL('../../.darkroom/', import.meta.url).pathname;
const outputLimitBytes = 64 * 1024 * 1024;

export type KubernetesTools =
  | {
      status: 'ready';
      kustomize: string;
      kubeconform: string;
      /** Contains a folder per Kubernetes version, and `custom`. */
      schemas: string;
      /** KEDA's schema of triggers and their fields. */
      kedaScalers: string;
    }
  /** missing: `go` or `python3` was not found. failed: a download or an installation failed. */
  | { status: 'missing' | 'failed'; reason: string };

/** Installs missing tools. Needs `go` and `python3` with pip, and on the first run the Go proxy and PyPI. */
export async function installKubernetesTools(): Promise<KubernetesTools> {
  const directory = join(home, `k8s-${[...Object.values(versions), ...kubernetesVersions].join('-')}`);
  try {
    if (!existsSync(directory)) await install(directory);
  } catch (error) {
    const { code, path, stderr, message } = error as Error & { code?: string; path?: string; stderr?: string };
    if (code === 'ENOENT') return { status: 'missing', reason: `no ${path ?? message} here` };
    return { status: 'failed', reason: stderr?.trim().split('\n').at(-1) || message };
  }
  return {
    status: 'ready',
    kustomize: join(directory, 'bin/kustomize'),
    kubeconform: join(directory, 'bin/kubeconform'),
    schemas: join(directory, 'schemas'),
    kedaScalers: join(directory, 'schemas/keda-scalers.json'),
  };
}

/** Installs all or nothing: an interrupted installation starts again. */
async function install(directory: string): Promise<void> {
  await mkdir(home, { recursive: true });
  const scratch = await mkdtemp(join(home, 'k8s-install-'));
  try {
    const environment = { GOBIN: join(scratch, 'bin') };
    await run('python3', ['--version'], scratch);
    await run('go', ['install', `sigs.k8s.io/kustomize/kustomize/v5@v${versions.kustomize}`], scratch, environment);
    await run(
      'go',
      ['install', `github.com/yannh/kubeconform/cmd/kubeconform@v${versions.kubeconform}`],
      scratch,
      environment,
    );
    const keda = await downloadModule('github.com/kedacore/keda/v2', versions.keda, scratch);
    const gatewayApi = await downloadModule('sigs.k8s.io/gateway-api', versions.gatewayApi, scratch);
    const python = join(scratch, 'python');
    const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--no-deps'];
    const wheel = `kubernetes-validate==${versions.kubernetesValidate}`;
    await run('python3', ['-m', 'pip', 'install', ...quiet, '--target', python, wheel], scratch);
    const schemas = join(scratch, 'schemas');
    for (const version of kubernetesVersions)
      await writeKubernetesSchemas({
        from: join(python, `kubernetes_validate/kubernetes-json-schema/v${version}-local-strict`),
        to: join(schemas, version),
      });
    await writeCustomSchemas({
      from: [
        join(keda, 'config/crd/bases/keda.sh_scaledobjects.yaml'),
        join(gatewayApi, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'),
      ],
      to: join(schemas, 'custom'),
    });
    await run('cp', [join(keda, 'schema/generated/scalers-schema.json'), join(schemas, 'keda-scalers.json')], scratch);
    await rm(python, { recursive: true });
    await rename(scratch, directory);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Downloads a Go module. Returns the directory of its sources. */
async function downloadModule(module: string, version: string, cwd: string): Promise<string> {
  const command = run('go', ['mod', 'download', '-json', `${module}@v${version}`], cwd);
  // `go mod download -json` reports errors on standard output too.
  const stdout = await command.catch((error: { stdout?: string }) => error.stdout || Promise.reject(error));
  const { Dir, Error: problem } = JSON.parse(stdout) as { Dir?: string; Error?: string };
  if (Dir === undefined) throw new Error(problem);
  return Dir;
}

async function run(
  program: string,
  args: string[],
  cwd: string,
  environment: Record<string, string> = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, ...environment }, maxBuffer: outputLimitBytes };
  return (await promisify(execFile)(program, args, options)).stdout;
}
