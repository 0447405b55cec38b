// Parts of the console that come when they are needed, or when there is nothing else to do.

import { lazy, type ComponentType } from 'react';
import { api } from '../api/client';
import { live } from '../api/data';

type Load<P> = () => Promise<{ default: ComponentType<P> }>;

const parts: (() => Promise<unknown>)[] = [];

/** The daemon is there again; at once where it has been all along. */
function back(): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      const { link } = live.snapshot();
      if (link !== 'live' && link !== 'polling') return;
      stop();
      resolve();
    };
    const stop = live.subscribe(look);
    look();
  });
}

const answers = () =>
  api.health().then(
    () => true,
    () => false,
  );

/** A part that cannot be had because the daemon is gone is asked for again when it is back. */
export async function fetched<T>(
  load: () => Promise<T>,
  there: () => Promise<boolean> = answers,
  again: () => Promise<void> = back,
): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch (error) {
      // Another version of the console may be there by now: that takes a new page.
      if (await there()) return await load().catch(() => Promise.reject(error as Error));
      await again();
    }
  }
}

export function later<P extends object>(load: Load<P>) {
  parts.push(load);
  return lazy(() => fetched(load));
}

/** Fetches what has not been needed yet, one by one. */
async function ahead(): Promise<void> {
  for (const load of parts) {
    try {
      await load();
    } catch {
      return; // whoever needs it asks again
    }
  }
}

/** Long after the first page is there, so that the others are when the daemon is not. */
export async function aheadWhenIdle(wait: number): Promise<void> {
  await back();
  await new Promise((resolve) => setTimeout(resolve, wait));
  if ('requestIdleCallback' in globalThis)
    await new Promise((resolve) => requestIdleCallback(resolve));
  await ahead();
}
