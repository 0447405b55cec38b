// Whether anybody looks at this page. A browser has six connections for each daemon: a page that nobody looks at
// gives its own back.

import { useEffect, useState } from 'react';

/** Less than the live connection waits for an answer, so that no page takes the others' for a fault. */
const HIDDEN = 5_000;

const hidden = () => document.visibilityState === 'hidden';

/**
 * Tells whether the page is looked at: at once, then when it has been hidden for a while, and when it is seen again.
 * One that was opened in the background is hidden from its beginning. The function that it gives ends that.
 */
export function attended(tell: (looked: boolean) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let looked = !hidden();
  const now = (is: boolean) => {
    if (is === looked) return;
    looked = is;
    tell(is);
  };
  const look = () => {
    clearTimeout(timer);
    if (hidden()) timer = setTimeout(() => now(false), HIDDEN);
    else now(true);
  };
  document.addEventListener('visibilitychange', look);
  tell(looked);
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
  };
}

export function useAttended(): boolean {
  const [looked, setLooked] = useState(() => !hidden());
  useEffect(() => attended(setLooked), []);
  return looked;
}
