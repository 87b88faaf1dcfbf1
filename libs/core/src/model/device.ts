/** Device of a model. `cuda:1` is the second GPU that CUDA reports, `cuda` the first. */
export type Device = 'cpu' | 'webgpu' | 'cuda' | `cuda:${number}`;

const devicePattern = /^(?:cpu|webgpu|cuda(?::(?:0|[1-9]\d?))?)$/;

/** Parses a comma-separated list of devices, in order of preference; undefined if it is invalid. */
export function parseDevices(text: string): [Device, ...Device[]] | undefined {
  const names = text.split(',').map((name) => name.trim());
  // `cuda` and `cuda:0` are the same device.
  const hasDuplicates = new Set(names.map((name) => (name === 'cuda' ? 'cuda:0' : name))).size < names.length;
  if (hasDuplicates || !names.every((name) => devicePattern.test(name))) return undefined;
  return names as [Device, ...Device[]];
}
