/** Byte store of a run: Redis, a directory, or a bucket of a real S3 server. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { hasS3Server, s3Environment, startS3Server } from '@darkroom/testing/processes';

export interface ChaosBytes {
  /** Settings of the store for all processes. */
  environment: Record<string, string>;
  /** Returns the files of all requests outside Redis. */
  files: () => string[];
  /** Kills the server and restarts it after `downMs`; undefined without a server. */
  kill?(downMs: number): Promise<void>;
  stop(): void;
}

const starts = {
  redis: (): ChaosBytes => ({ environment: {}, files: () => [], stop: () => {} }),
  directory(): ChaosBytes {
    const path = mkdtempSync(join(tmpdir(), 'darkroom-chaos-bytes-'));
    return {
      environment: { BYTES_URL: pathToFileURL(path).href },
      files: () => filesIn(path),
      stop: () => rmSync(path, { recursive: true, force: true }),
    };
  },
  async s3(): Promise<ChaosBytes> {
    const server = await startS3Server();
    return {
      environment: { ...s3Environment, BYTES_URL: `s3://${server.bucket}/of/chaos?endpoint=${server.endpoint}` },
      files: () => filesIn(server.files),
      async kill(downMs) {
        await server.kill();
        await delay(downMs);
        await server.start();
      },
      stop: () => void server.close(),
    };
  },
};

export type BytesBackend = keyof typeof starts;

/** Available stores; `s3` only if `installS3Server` has built its server. */
export const bytesBackends = (Object.keys(starts) as BytesBackend[]).filter(
  (backend) => backend !== 's3' || hasS3Server(),
);

export async function startBytes(backend: BytesBackend): Promise<ChaosBytes> {
  return starts[backend]();
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
  } catch {
    // A directory was deleted during the listing: count it as a file, so that the caller lists again.
    return [directory];
  }
}
