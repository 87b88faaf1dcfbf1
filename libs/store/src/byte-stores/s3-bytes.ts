/** Stores bytes in a bucket of S3 or of an S3-compatible server. */
import type { S3Client } from '@aws-sdk/client-s3';
import type { BucketAddress } from '@darkroom/core';
import { type ByteStore, bytesUnavailable } from './byte-store.ts';

/** Loaded on demand: the SDK is slow to load and only installations with a bucket need it. */
async function loadSdk() {
  const [client, presigner] = await Promise.all([
    import('@aws-sdk/client-s3'),
    import('@aws-sdk/s3-request-presigner'),
  ]);
  return { ...client, ...presigner };
}

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

export class S3Bytes implements ByteStore {
  readonly #address: BucketAddress;
  readonly #sdk: Promise<Sdk>;
  readonly #client: Promise<S3Client>;
  readonly link: ByteStore['link'];

  constructor(address: BucketAddress) {
    this.#address = address;
    this.#sdk = loadSdk();
    this.#client = this.#sdk.then((sdk) => openClient(sdk, address, address.endpoint));
    if (address.links === undefined) return;
    const signing = this.#sdk.then((sdk) => openClient(sdk, address, address.links));
    this.link = (name, { contentType, seconds }) =>
      this.#call('link', async (_client, { GetObjectCommand, getSignedUrl }) => {
        const command = new GetObjectCommand({ ...this.#at(name), ResponseContentType: contentType });
        return getSignedUrl(await signing, command, { expiresIn: seconds });
      });
  }

  put(name: string, data: Uint8Array): Promise<void> {
    return this.#call('put', async (client, { PutObjectCommand }) => {
      await client.send(new PutObjectCommand({ ...this.#at(name), Body: data, ContentLength: data.byteLength }));
    });
  }

  get(name: string, { from, to }: { from: number; to: number }): Promise<Buffer | undefined> {
    return this.#call('get', async (client, { GetObjectCommand, NoSuchKey }) => {
      try {
        const reply = await client.send(new GetObjectCommand({ ...this.#at(name), Range: `bytes=${from}-${to - 1}` }));
        const data = await reply.Body?.transformToByteArray();
        return data?.byteLength === to - from ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : undefined;
      } catch (error) {
        if (error instanceof NoSuchKey) return undefined;
        throw error;
      }
    });
  }

  async *list(prefix: string): AsyncGenerator<readonly string[], void> {
    const { bucket: Bucket, prefix: bucketPrefix } = this.#address;
    const { paginateListObjectsV2 } = await this.#sdk;
    try {
      const pages = paginateListObjectsV2({ client: await this.#client }, { Bucket, Prefix: bucketPrefix + prefix });
      for await (const { Contents = [] } of pages) yield Contents.map(({ Key = '' }) => Key.slice(bucketPrefix.length));
    } catch (error) {
      throw bytesUnavailable('list', error);
    }
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#call('remove', async (client, { DeleteObjectsCommand }) => {
      const Delete = { Objects: names.map((name) => ({ Key: this.#at(name).Key })), Quiet: true };
      const { Errors: [error] = [] } = await client.send(
        new DeleteObjectsCommand({ Bucket: this.#address.bucket, Delete }),
      );
      if (error !== undefined) throw new Error(`${error.Code}: ${error.Message}`);
    });
  }

  #at(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#address.bucket, Key: this.#address.prefix + name };
  }

  async #call<Reply>(operation: keyof ByteStore, run: (client: S3Client, sdk: Sdk) => Promise<Reply>): Promise<Reply> {
    try {
      return await run(await this.#client, await this.#sdk);
    } catch (error) {
      throw bytesUnavailable(operation, error);
    }
  }
}

function openClient({ S3Client }: Sdk, { region }: BucketAddress, endpoint: string | undefined): S3Client {
  return new S3Client({
    ...(region !== undefined && { region }),
    // Other servers have no host name per bucket.
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // Other servers do not know the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 2,
    // Treats a silent server as unavailable. Without `throwOnRequestTimeout` the SDK only logs a warning.
    requestHandler: { connectionTimeout: 2000, requestTimeout: 8000, socketTimeout: 8000, throwOnRequestTimeout: true },
  });
}
