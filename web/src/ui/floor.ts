// What stands at the bottom of the window: remarks come above it.

import { useEffect, useRef } from 'react';

export function useFloor() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const own = place.current;
    if (!own) return undefined;
    const { style } = document.documentElement;
    const tell = () => {
      const height = Math.max(0, window.innerHeight - own.getBoundingClientRect().top);
      style.setProperty('--floor', `${height}px`);
    };
    const watcher = new ResizeObserver(tell);
    watcher.observe(own);
    window.addEventListener('resize', tell);
    tell();
    return () => {
      watcher.disconnect();
      window.removeEventListener('resize', tell);
      style.removeProperty('--floor');
    };
  }, []);
  return place;
}
