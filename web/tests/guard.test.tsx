import { QueryClientProvider } from '@tanstack/react-query';
import { act, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { useGuard } from '../src/api/guard';
import { LanguageProvider } from '../src/i18n';
import CommandPage from '../src/pages/command/page';
import SettingPage from '../src/pages/setting/page';
import { OverlayProvider } from '../src/ui/overlay';

/** What the daemon says of who is looking. */
let session: () => Response;

const says = (scope: string) => () => Response.json({ via: 'token', scope, user: 'u', csrf: null });
const failing = () =>
  Response.json({ error: { code: 'internal', message: 'not now' } }, { status: 500 });

beforeEach(() => {
  vi.useFakeTimers();
  queryClient.clear();
  vi.stubGlobal('fetch', (request: Request) =>
    Promise.resolve(request.url.endsWith('/api/session') ? session() : failing()),
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));

function Guarded() {
  return <button {...useGuard()}>Kill</button>;
}
async function page() {
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <Guarded />
          <CommandPage />
          <SettingPage />
        </OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );
  await settle();
  return screen.getByText<HTMLButtonElement>('Kill');
}
/** Whatever tells a reader that they are one. */
const told = () => [
  screen.queryByText(/need a token that may change/),
  screen.queryByText(/takes one that may change/),
];

describe('whoever is looking', () => {
  it('is told that they may only look, if that is so', async () => {
    session = says('read');
    const kill = await page();
    expect(kill.disabled).toBe(true);
    expect(kill.title).toContain('for reading');
    expect(told()).not.toContain(null);
  });
  it('may do what they may once that is known, and is told nothing wrong until then', async () => {
    session = failing;
    const kill = await page();
    expect(kill.disabled).toBe(true);
    expect(kill.title).toBe('');
    expect(told()).toEqual([null, null]);
    session = says('full');
    await settle(5_000);
    expect(kill.disabled).toBe(false);
  });
});
