/** Draws a seed of 0 to 2³²−1. */
export function drawSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}
