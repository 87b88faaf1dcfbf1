import { InferenceSession, Tensor } from 'onnxruntime-node';

/** `MatMulInteger` of uint8 `a` [rows, 8] and int8 [8, 4], all of them 127, as ONNX. */
const graph =
  'CAgSADpwChgKAWEKAWISAXkiDU1hdE11bEludGVnZXISAWcqKwgICAQQA0IBYkogf39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39aEQoB' +
  'YRIMCgoIAhIGCgAKAggIYhEKAXkSDAoKCAYSBgoACgIIBEIECgAQDQ==';

let found: Promise<boolean> | undefined;

/**
 * Whether the quickest products of uint8 and int8 are exact on this CPU: with VNNI and AMX they are. Without, two products are
 * added up in 16 bits, which these are too large for. (A CPU with AMX takes half the time for a step of a text model that it
 * takes with the slower products that are exact on any: those are chosen by `session.x64quantprecision`.)
 */
export function hasExactProducts(): Promise<boolean> {
  found ??= findOut();
  return found;
}

async function findOut(): Promise<boolean> {
  const options: InferenceSession.SessionOptions = { intraOpNumThreads: 1, interOpNumThreads: 1 };
  const session = await InferenceSession.create(Buffer.from(graph, 'base64'), options);
  try {
    const { y } = await session.run({ a: new Tensor('uint8', new Uint8Array(16).fill(255), [2, 8]) });
    return (y!.data as Int32Array).every((sum) => sum === 8 * 255 * 127);
  } finally {
    await session.release();
  }
}
