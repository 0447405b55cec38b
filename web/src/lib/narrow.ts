import { useEffect, useState } from 'react';

/** Below these a row has no columns, and a page only one: as in the style sheets. */
export const PHONE = 760;
export const ONE_COLUMN = 1180;

export function useNarrow(width: number): boolean {
  const query = `(max-width: ${width}px)`;
  const [narrow, setNarrow] = useState(() => globalThis.matchMedia(query).matches);
  useEffect(() => {
    const media = globalThis.matchMedia(query);
    const change = () => setNarrow(media.matches);
    media.addEventListener('change', change);
    return () => media.removeEventListener('change', change);
  }, [query]);
  return narrow;
}
