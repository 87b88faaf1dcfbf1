/** Places of which each holder has only so many at a time, so that no one of them can take all. */
export function createPlaces(mostEach: number) {
  const taken = new Map<string, number>();
  return {
    /** A place, to be given back by calling it (again does nothing); undefined when the holder has all that it may. */
    take(holder: string): (() => void) | undefined {
      const count = taken.get(holder) ?? 0;
      if (count >= mostEach) return undefined;
      taken.set(holder, count + 1);
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        const left = (taken.get(holder) ?? 1) - 1;
        if (left === 0) taken.delete(holder);
        else taken.set(holder, left);
      };
    },
  };
}
