import { InferenceSession, Tensor } from 'onnxruntime-node';

/** An ONNX model with one `MatMulInteger` of uint8 `a` [rows, 8] and an int8 [8, 4] of 127s. */
const graph =
  'CAgSADpwChgKAWEKAWISAXkiDU1hdE11bEludGVnZXISAWcqKwgICAQQA0IBYkogf39/f39/f39/f39/f39/f39/f39/f39/f39/f39/f39aEQoB' +
  'YRIMCgoIAhIGCgAKAggIYhEKAXkSDAoKCAYSBgoACgIIBEIECgAQDQ==';

let result: Promise<boolean> | undefined;

/**
 * Returns true if the fastest uint8 × int8 products are exact on this CPU, as with VNNI or AMX. Other CPUs add two
 * products in 16 bits, which overflows here; `session.x64quantprecision` selects slower, exact ones. (With AMX a text
 * model's step takes half the time of those.)
 */
export function hasExactProducts(): Promise<boolean> {
  result ??= measure();
  return result;
}

async function measure(): Promise<boolean> {
  const options: InferenceSession.SessionOptions = { intraOpNumThreads: 1, interOpNumThreads: 1 };
  const session = await InferenceSession.create(Buffer.from(graph, 'base64'), options);
  try {
    const { y } = await session.run({ a: new Tensor('uint8', new Uint8Array(16).fill(255), [2, 8]) });
    return y?.data instanceof Int32Array && y.data.every((sum) => sum === 8 * 255 * 127);
  } finally {
    await session.release();
  }
}
