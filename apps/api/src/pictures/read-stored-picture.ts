import { readAttachment, readOutput, readRequest } from '@darkroom/store';
import { picture } from '@darkroom/kinds';
import type { ApiContext } from '../context.ts';

/** Paths of what a request began with, and of what it has made; links, too, of which only the path counts: its owner asks. */
const pathPattern =
  /^\/v1\/predict\/(?<id>[^/]{1,128})\/(?:inputs\/(?<name>image|mask)|images\/(?<index>\d{1,3}))(?:\?.*)?$/;

/** The picture at a path of this server; undefined when it is not there, or not its owner's. */
export async function readStoredPicture(
  { askStore }: Pick<ApiContext, 'askStore'>,
  path: string,
  owner: string,
): Promise<Uint8Array | undefined> {
  const { id = '', name, index } = pathPattern.exec(path)?.groups ?? {};
  const found = await askStore((store) => readRequest(store, id, owner));
  if (found.status !== 'found' || found.request.kind !== picture.id) return undefined;
  if (name !== undefined) return askStore((store) => readAttachment(store, id, name));
  return (await askStore((store) => readOutput(store, id, Number(index))))?.data;
}
