/** Of which every model knows something, the embedded one all. */
const things = ['red apple', 'cat', 'house', 'bicycle', 'rose', 'fish', 'pizza', 'snowman'];
const places = ['on a white background', 'on a blue background', 'on a green background', 'on a yellow background'];

/** So many prompts, no two alike up to 32. */
export function listPrompts(count: number): string[] {
  const all = places.flatMap((place) => things.map((thing) => `a ${thing} ${place}`));
  return Array.from({ length: count }, (_, at) => all[at % all.length]!);
}
