// Keys that work anywhere on a page, but not while somebody writes or a dialog is open.

import { useEffect, useRef, type KeyboardEvent as ReactKeyboardEvent } from 'react';

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const SEQUENCE_TIME = 900;

function busy(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const at = event.target;
  if (!(at instanceof HTMLElement)) return false;
  if (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) {
    return !(at instanceof HTMLInputElement && at.type === 'checkbox');
  }
  // Enter belongs to the button or link it is pressed on.
  if (event.key === 'Enter' && at.closest('button,a,summary')) return true;
  return (
    document.querySelector('[role="dialog"],[role="alertdialog"],[role="menu"]') !== null ||
    at.closest('[role="menu"]') !== null
  );
}

/** Escape leaves a search, with its words in place: browsers would clear it. */
export function leaves(event: ReactKeyboardEvent<HTMLElement>, to?: HTMLElement | null): boolean {
  if (event.key !== 'Escape') return false;
  event.preventDefault();
  event.currentTarget.blur();
  to?.focus();
  return true;
}

/** Two keys in a row are written "g j". */
export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    let first: { key: string; at: number } | null = null;
    const onKey = (event: KeyboardEvent) => {
      if (busy(event)) return;
      const pair =
        first && Date.now() - first.at < SEQUENCE_TIME ? `${first.key} ${event.key}` : null;
      const action = (pair ? latest.current[pair] : undefined) ?? latest.current[event.key];
      first = { key: event.key, at: Date.now() };
      if (!action) return;
      event.preventDefault();
      action(event);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}
