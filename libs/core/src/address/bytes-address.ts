import { fileURLToPath } from 'node:url';

/** A bucket of S3 or of an S3-compatible server. */
export interface BucketAddress {
  kind: 'bucket';
  bucket: string;
  /** Prefix of all object names: empty, or ends with a slash. */
  prefix: string;
  /** URL of an S3-compatible server; Amazon's if absent. */
  endpoint?: string;
  region?: string;
  /** Public URL of the bucket's server: clients are redirected to presigned URLs there. No redirects if absent. */
  links?: string;
}

/** Location of the bytes of requests, parsed from `BYTES_URL`. */
export type BytesAddress = { kind: 'directory'; path: string } | BucketAddress;

const bucketPattern =
  /^s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(?<prefix>[\w.\-/]*))?(?:\?(?<query>.*))?$/;
const queryNames = new Set(['endpoint', 'region', 'links']);

/** Parses `BYTES_URL`; undefined if it is invalid. */
export function parseBytesUrl(text: string): BytesAddress | undefined {
  if (/^file:\/\/\/[^?#]+$/.test(text)) return directoryOf(text);
  const { bucket, prefix = '', query = '' } = bucketPattern.exec(text)?.groups ?? {};
  if (bucket === undefined) return undefined;
  const options = [...new URLSearchParams(query)];
  if (
    !options.every(
      ([name, value]) => queryNames.has(name) && (name === 'region' ? /^[\w-]+$/ : /^https?:\/\/./).test(value),
    )
  )
    return undefined;
  return {
    kind: 'bucket',
    bucket,
    prefix: prefix.replace(/\/*$/, (_end, at) => (at === 0 ? '' : '/')),
    ...Object.fromEntries(options),
  };
}

function directoryOf(url: string): BytesAddress | undefined {
  try {
    return { kind: 'directory', path: fileURLToPath(url) };
  } catch (error) {
    // An incomplete percent escape, or an escaped slash.
    if (error instanceof TypeError || error instanceof URIError) return undefined;
    throw error;
  }
}
