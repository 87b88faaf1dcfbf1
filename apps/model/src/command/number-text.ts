import { itemAt } from '@darkroom/core';
/** Formats a size such as `1.2 GB`, in powers of 1000 as disks and the hub do. */
export function sizeText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 99.95 ? 1 : 0)} ${itemAt(units, unit)}`;
}

/** Formats a count such as `9.1 M`. */
export function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} B`;
  return count >= 1e5 ? `${(count / 1e6).toFixed(1)} M` : String(count);
}
