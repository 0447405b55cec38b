// What this browser remembers. What was chosen or written here holds until the page is left, whatever other
// pages remember meanwhile and though the browser may remember nothing.

import { useState, useSyncExternalStore } from 'react';

const watchers = new Map<string, Set<() => void>>();
const kept = new Map<string, string>();

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
  try {
    return kept.get(key) ?? localStorage.getItem(key) ?? fallback;
  } catch {
    return fallback;
  }
}

export function useRemembered<T extends string>(key: string, fallback: T): [T, (value: T) => void] {
  const [first] = useState(() => recall(key, fallback));
  const value = useSyncExternalStore(
    (watcher) => {
      const set = watchers.get(key) ?? new Set();
      watchers.set(key, set.add(watcher));
      return () => set.delete(watcher);
    },
    () => (kept.get(key) ?? first) as T,
  );
  return [value, (next) => remember(key, next)];
}
