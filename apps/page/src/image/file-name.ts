const maxWords = 60;
const endings: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' };

/** Returns a file name such as `darkroom-a-red-apple-7.png`, without characters that a file system refuses. */
export function fileName(prompt: string, seed: number, contentType: string): string {
  const words = prompt
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Mark}\p{Number}]+/gu, '-')
    .slice(0, maxWords)
    .replaceAll(/^-+|-+$/g, '');
  const parts = ['darkroom', words, String(seed)].filter((part) => part !== '');
  return `${parts.join('-')}.${endings[contentType] ?? 'img'}`;
}
