import { QueryClientProvider } from '@tanstack/react-query';
import { act, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { queryClient } from '../src/api/data';
import { JOB_STATES, type Job } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import StatePage from '../src/pages/state/page';
import { OverlayProvider } from '../src/ui/overlay';

const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 1]));
const job = (id: number) =>
  ({ id, state: 'queued', priority: 5, name: `j${id}`, attempt: null, ended_at: null }) as Job;

const settle = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));

beforeEach(() => {
  vi.useFakeTimers();
  history.replaceState(null, '', '/ui/state');
  queryClient.clear();
  queryClient.setQueryData(['session'], { via: 'token', scope: 'full', user: 'u', csrf: null });
  queryClient.setQueryData(['status'], { counts });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function page() {
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <StatePage />
        </OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );
  await settle();
}

describe('a page that cannot be had', () => {
  it('is asked for again when somebody says so, and not before', async () => {
    let down = true;
    const ask = vi.spyOn(api, 'jobs').mockImplementation(({ after }) => {
      if (after === undefined) return Promise.resolve({ jobs: [job(3), job(2)], next: 2 });
      if (down) return Promise.reject(new Error('a tunnel that broke'));
      return Promise.resolve({ jobs: [job(1)], next: null });
    });
    await page();
    await settle(60_000);
    // The first page, and the second with what every request is tried again.
    expect(ask).toHaveBeenCalledTimes(1 + 3);
    expect(screen.getByText(/could not be loaded: a tunnel that broke/)).toBeTruthy();
    down = false;
    fireEvent.click(screen.getByText('Try again'));
    await settle();
    expect(screen.getByText('3 jobs')).toBeTruthy();
    expect(ask).toHaveBeenCalledTimes(1 + 3 + 1);
  });
});

describe('a search', () => {
  it('goes on by itself until it has found enough, or all there is', async () => {
    history.replaceState(null, '', '/ui/state?q=j');
    vi.spyOn(api, 'jobs').mockImplementation(({ after }) =>
      // The daemon looks through a part of its jobs for each answer.
      Promise.resolve(
        after === 2
          ? { jobs: [], next: 1 }
          : { jobs: after ? [] : [job(3), job(2)], next: after ? null : 2 },
      ),
    );
    await page();
    await settle(1_000);
    expect(screen.getByText('2 jobs')).toBeTruthy();
  });
});

describe('a selection of all', () => {
  it('is none where the list is another one by the time it is known', async () => {
    const never = new Promise<never>(() => undefined);
    vi.spyOn(api, 'jobs').mockImplementation(({ after }) =>
      after === undefined ? Promise.resolve({ jobs: [job(3), job(2)], next: 2 }) : never,
    );
    const all = { ids: [1, 2, 3, 4, 5], next: null };
    let answer: (ids: typeof all) => void = () => undefined;
    vi.spyOn(api, 'ids').mockImplementation(() => new Promise((resolve) => (answer = resolve)));
    await page();
    const selectAll = () => fireEvent.click(screen.getByText('Select all of this list'));
    fireEvent.click(screen.getByLabelText('Select all that are loaded'));
    selectAll();
    answer(all);
    await settle();
    expect(screen.getByText('5 selected')).toBeTruthy();
    selectAll();
    fireEvent.click(screen.getByRole('button', { name: /^failed/ }));
    await settle();
    answer(all);
    await settle();
    expect(screen.queryByText(/selected$/)).toBeNull();
  });
});
