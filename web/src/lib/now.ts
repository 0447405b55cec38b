import { useEffect, useState } from 'react';
import { useLive } from '../api/data';

/** The time, once a second, while it is asked for. Nobody knows what goes on while the daemon is gone: it stands still. */
export function useNow(ticking: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  const { link, heard } = useLive();
  const known = link !== 'gone';
  useEffect(() => {
    if (!ticking || !known) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [ticking, known]);
  return known || heard === null ? now : Math.min(now, heard);
}
