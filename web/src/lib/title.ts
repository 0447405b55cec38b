import { useEffect } from 'react';

/** What the tab and the list of pages visited are called; null: somebody else says so. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) document.title = `${title} · berth`;
  }, [title]);
}
