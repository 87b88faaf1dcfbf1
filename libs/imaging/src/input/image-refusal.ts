import { type ImageSize } from '@darkroom/kinds';

export { type ImageSize };

/** The reason why a file is refused. */
export interface ImageRefusal {
  readonly status: 'refused';
  /** A description of the file, such as `a GIF`. */
  readonly received: string;
  readonly expected: string;
}

export function refused(came: string, expected: string): ImageRefusal {
  return { status: 'refused', received: came, expected };
}
