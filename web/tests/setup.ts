import { cleanup } from '@testing-library/react';
import { afterEach } from 'vitest';

// What a browser has and jsdom has not.
globalThis.matchMedia ??= (query: string) =>
  ({
    matches: false,
    media: query,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }) as unknown as MediaQueryList;
globalThis.ResizeObserver ??= class {
  observe() {
    return undefined;
  }
  unobserve() {
    return undefined;
  }
  disconnect() {
    return undefined;
  }
} as unknown as typeof ResizeObserver;
if (!('getClientRects' in Range.prototype)) {
  Object.assign(Range.prototype, { getClientRects: () => [] });
}

afterEach(() => {
  cleanup();
  localStorage.clear();
});
