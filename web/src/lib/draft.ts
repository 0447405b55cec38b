// What has been written and not saved. It outlives the page it was written on, and is asked about before the
// console is left.

import { useCallback, useSyncExternalStore } from 'react';

const drafts = new Map<string, unknown>();
const watchers = new Set<() => void>();

const subscribe = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

/** `nothing` is what there is before anything is written; the same object each time. */
export function useDraft<T>(key: string, nothing: T): [T, (change: (before: T) => T) => void] {
  const read = useCallback(() => (drafts.get(key) ?? nothing) as T, [key, nothing]);
  const write = useCallback(
    (change: (before: T) => T) => {
      const next = change(read());
      if (next === nothing) drafts.delete(key);
      else drafts.set(key, next);
      for (const watcher of watchers) watcher();
    },
    [key, nothing, read],
  );
  return [useSyncExternalStore(subscribe, read), write];
}

export function askBeforeLeaving(): void {
  globalThis.addEventListener('beforeunload', (event) => {
    if (drafts.size) event.preventDefault();
  });
}
