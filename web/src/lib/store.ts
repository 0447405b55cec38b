// What this browser remembers. Where it may remember nothing the choice holds until the page is left.

import { useSyncExternalStore } from 'react';

const watchers = new Map<string, Set<() => void>>();
const kept = new Map<string, string>();

function read(key: string): string | null {
  try {
    return localStorage.getItem(key) ?? kept.get(key) ?? null;
  } catch {
    return kept.get(key) ?? null;
  }
}

export function remember(key: string, value: string): void {
  kept.set(key, value);
  try {
    localStorage.setItem(key, value);
  } catch {
    // Private windows refuse; `kept` has it.
  }
  for (const watcher of watchers.get(key) ?? []) watcher();
}

export function recall(key: string, fallback: string): string {
  return read(key) ?? fallback;
}

export function useRemembered<T extends string>(key: string, fallback: T): [T, (value: T) => void] {
  const value = useSyncExternalStore(
    (watcher) => {
      const set = watchers.get(key) ?? new Set();
      watchers.set(key, set.add(watcher));
      return () => set.delete(watcher);
    },
    () => recall(key, fallback) as T,
  );
  return [value, (next) => remember(key, next)];
}
