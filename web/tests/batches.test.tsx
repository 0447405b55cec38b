import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { JOB_STATES, type Batch } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import ResultsPage, { shownBatches } from '../src/pages/results/page';
import RulePage from '../src/pages/rule/page';
import Groups from '../src/pages/state/groups';
import { OverlayProvider } from '../src/ui/overlay';
import type { ReactNode } from 'react';

const batch = (id: number): Batch =>
  ({
    id,
    name: `sweep-${id}`,
    jobs: 1,
    submitted_at: 0,
    counts: Object.fromEntries(JOB_STATES.map((state) => [state, 0])),
  }) as unknown as Batch;

/** Batches 3, 2 and 1, of which the first answer tells the newest. */
const answers = (address: URL): unknown => {
  const of = /^\/api\/batches\/(\d+)$/.exec(address.pathname);
  if (of) return batch(Number(of[1]));
  switch (address.pathname) {
    case '/api/batches':
      return address.searchParams.has('after')
        ? { batches: [batch(2), batch(1)], next: null }
        : { batches: [batch(3)], next: 3 };
    case '/api/queues':
      return { queues: [] };
    case '/api/results':
      return { by: [], groups: [], warnings: [] };
    case '/api/rules':
      return { rules: [] };
    case '/api/rules/history':
      return { changes: [] };
    default:
      return { waiting: 0, holdups: [] };
  }
};

let asked: string[]; // of rules

beforeEach(() => {
  queryClient.clear();
  asked = [];
  vi.stubGlobal('fetch', (request: Request) => {
    const address = new URL(request.url);
    if (address.pathname === '/api/rules') asked.push(address.pathname + address.search);
    return Promise.resolve(Response.json(answers(address)));
  });
});

const page = (children: ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>{children}</OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );

describe('more batches than are told at once', () => {
  it('are said to be there, and shown when somebody wants them', async () => {
    page(<Groups />);
    expect(await screen.findByText('The newest 1 are shown.')).toBeTruthy();
    expect(screen.queryByText('sweep-1')).toBeNull();
    await userEvent.click(screen.getByRole('button', { name: 'Show more' }));
    expect(await screen.findByText('sweep-1')).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull();
  });
  it('can be chosen from by an address', async () => {
    history.replaceState(null, '', '/results?batch=1');
    page(<ResultsPage />);
    const select = await screen.findByLabelText<HTMLSelectElement>('Batch');
    expect(select.value).toBe('1');
    expect(await screen.findByRole('option', { name: '1 · sweep-1' })).toBeTruthy();
    expect(screen.getAllByRole('option')).toHaveLength(2);
  });
  it('have rules that can be looked at, however old they are', async () => {
    page(<RulePage />);
    const scope = await screen.findByLabelText<HTMLSelectElement>('Whose rules');
    await userEvent.click(await screen.findByRole('button', { name: 'Older batches' }));
    expect(await screen.findByRole('option', { name: 'Batch 1 · sweep-1' })).toBeTruthy();
    await userEvent.selectOptions(scope, 'batch:1');
    await waitFor(() => expect(asked.at(-1)).toBe('/api/rules?batch=1'));
    expect(screen.queryByRole('button', { name: 'Older batches' })).toBeNull();
  });
  it('are not told twice', () => {
    const newest = [batch(3), batch(2)];
    expect(shownBatches(newest, batch(2))).toBe(newest);
    expect(shownBatches(newest, undefined)).toBe(newest);
  });
});
