import { fileURLToPath } from 'node:url';

/** A bucket of S3, or of a server that speaks its protocol. */
export interface BucketAddress {
  kind: 'bucket';
  bucket: string;
  /** What all names begin with: empty, or with a slash at its end. */
  prefix: string;
  /** Of another server than Amazon's. */
  endpoint?: string;
  region?: string;
  /** By which clients reach the bucket; they are sent there then. */
  links?: string;
}

/** Where bytes of requests are kept, as `BYTES_URL` says it. */
export type BytesAddress = { kind: 'directory'; path: string } | BucketAddress;

const bucketPattern =
  /^s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(?<prefix>[\w.\-/]*))?(?:\?(?<query>.*))?$/;
const queryNames = new Set(['endpoint', 'region', 'links']);

/** Reads where bytes are kept; undefined for what is no such place. */
export function parseBytesUrl(text: string): BytesAddress | undefined {
  if (/^file:\/\/\/[^?#]+$/.test(text)) return directoryOf(text);
  const { bucket, prefix = '', query = '' } = bucketPattern.exec(text)?.groups ?? {};
  if (bucket === undefined) return undefined;
  const said = [...new URLSearchParams(query)];
  if (
    !said.every(
      ([name, value]) => queryNames.has(name) && (name === 'region' ? /^[\w-]+$/ : /^https?:\/\/./).test(value),
    )
  )
    return undefined;
  return {
    kind: 'bucket',
    bucket,
    prefix: prefix.replace(/\/*$/, (_end, at) => (at === 0 ? '' : '/')),
    ...Object.fromEntries(said),
  };
}

function directoryOf(url: string): BytesAddress | undefined {
  try {
    return { kind: 'directory', path: fileURLToPath(url) };
  } catch (error) {
    // Half an escape, or a slash in one.
    if (error instanceof TypeError || error instanceof URIError) return undefined;
    throw error;
  }
}
