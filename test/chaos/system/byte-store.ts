/** Where the pictures of a run are: in Redis, in a directory, or in a bucket of a real S3 server. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { hasS3Server, s3Environment, startS3Server } from '@darkroom/testing/processes';

export interface ChaosBytes {
  /** What all processes are told of it. */
  environment: Record<string, string>;
  /** Files outside of Redis, of all requests. */
  files: () => string[];
  /** SIGKILL; there is none where no server is. */
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

export type BytesPlace = keyof typeof starts;

/** The bucket where `installS3Server` has built its server. */
export const bytesPlaces = (Object.keys(starts) as BytesPlace[]).filter((place) => place !== 's3' || hasS3Server());

export async function startBytes(place: BytesPlace): Promise<ChaosBytes> {
  return starts[place]();
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
  } catch {
    // A folder went while it was looked at.
    return [directory];
  }
}
