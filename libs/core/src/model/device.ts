/** What a model may run on. `cuda:1` is the second of the GPUs that CUDA shows, `cuda` the first. */
export type Device = 'cpu' | 'webgpu' | 'cuda' | `cuda:${number}`;

const devicePattern = /^(?:cpu|webgpu|cuda(?::(?:0|[1-9]\d?))?)$/;

/** Reads devices in the order they are wanted in, with commas between them; undefined if it is no such list. */
export function parseDevices(text: string): [Device, ...Device[]] | undefined {
  const names = text.split(',').map((name) => name.trim());
  // `cuda` and `cuda:0` are one device.
  const isDouble = new Set(names.map((name) => (name === 'cuda' ? 'cuda:0' : name))).size < names.length;
  if (isDouble || !names.every((name) => devicePattern.test(name))) return undefined;
  return names as [Device, ...Device[]];
}
