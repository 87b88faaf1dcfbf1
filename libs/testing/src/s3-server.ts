/** A real S3 server: Versity's gateway on a directory, built through the Go module proxy. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './redis-server.ts';

const version = 'v1.8.0';
const folder = new URL(`../../../.darkroom/versitygw-${version}/`, import.meta.url).pathname;
const bucket = 'images';

/** Credentials as environment variables for the AWS SDK. */
export const s3Environment = {
  AWS_ACCESS_KEY_ID: 'darkroom',
  AWS_SECRET_ACCESS_KEY: 'a-secret-of-the-tests',
  AWS_REGION: 'us-east-1',
};

export interface S3Server {
  endpoint: string;
  bucket: string;
  /** Directory of its objects. */
  files: string;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
  /** Restarts it on the same port with its data. */
  start(): Promise<void>;
  /** Ends it and deletes its data. */
  close(): Promise<void>;
}

export function hasS3Server(): boolean {
  return existsSync(join(folder, 'versitygw'));
}

/** Builds it if it is missing. Needs Go, and the module proxy the first time. */
export async function installS3Server(): Promise<void> {
  if (hasS3Server()) return;
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-p=2' };
  await promisify(execFile)('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${version}`], { env });
}

/** Starts a server with one empty bucket. */
export async function startS3Server(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-s3-'));
  // A bucket is a directory.
  await mkdir(join(directory, bucket));
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = s3Environment;
  const words = ['--quiet', '--access', access, '--secret', secret, '--port', `127.0.0.1:${port}`, 'posix', directory];
  const open = async () => {
    const child = spawn(join(folder, 'versitygw'), words, { stdio: 'ignore' });
    while (child.exitCode === null && !(await isListening(endpoint))) await delay(20);
    if (child.exitCode !== null) throw new Error('the S3 server ended at its start');
    return child;
  };
  let child = await open();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  const close = async (): Promise<void> => {
    await kill();
    await rm(directory, { recursive: true });
  };
  const start = async (): Promise<void> => void (child = await open());
  return { endpoint, bucket, files: join(directory, bucket), kill, start, close };
}

async function isListening(endpoint: string): Promise<boolean> {
  return fetch(endpoint).then(
    () => true,
    () => false,
  );
}
