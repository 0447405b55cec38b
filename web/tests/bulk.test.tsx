import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { queryClient } from '../src/api/data';
import { LanguageProvider } from '../src/i18n';
import { BulkBar } from '../src/pages/state/bulk';
import { OverlayProvider } from '../src/ui/overlay';

/** What the daemon is told to do, and what of the list it still has. */
let done: { path: string; ids: unknown }[];
let listed: number[];
let lookups: URLSearchParams[];

beforeEach(() => {
  queryClient.clear();
  done = [];
  lookups = [];
  listed = [1, 2, 3];
  vi.stubGlobal('fetch', async (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    let body: unknown;
    if (request.method === 'GET') {
      lookups.push(searchParams);
      const [id, ...more] = listed.filter((one) => one > Number(searchParams.get('after') ?? 0));
      // A page at a time, each with one job.
      body = { jobs: id ? [{ id }] : [], next: more.length ? id : null };
    } else {
      const { ids } = (await request.json()) as { ids: unknown };
      done.push({ path: pathname, ids });
      body = { killed: [], cancelled: ids, paused: [], held: [1], unknown: [], refused: [] };
    }
    return new Response(JSON.stringify(body), {
      headers: { 'Content-Type': 'application/json' },
    });
  });
});

const still = async (ids: readonly number[]) =>
  (await api.parts(ids, [], { state: 'queued', q: 'lr' })).map((job) => job.id);

const bar = () =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <BulkBar
            ids={[1, 2, 3]}
            still={still}
            jobs={[]}
            more={false}
            onAll={() => undefined}
            onClear={() => undefined}
          />
        </OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );

describe('what is done to selected jobs', () => {
  it('is done to those that the list still has', async () => {
    bar();
    listed = [1, 3];
    await userEvent.click(screen.getByText('Pause'));
    await screen.findByText('1 paused. 1 left out: no longer in this list.');
    expect(done).toEqual([{ path: '/api/jobs/pause', ids: '1,3' }]);
    expect(lookups[0]?.get('ids')).toBe('1-3');
    expect(lookups[0]?.get('state')).toBe('queued');
    expect(lookups[0]?.get('q')).toBe('lr');
  });

  it('spares a job that has left the list while one was asked', async () => {
    bar();
    listed = [1, 2];
    await userEvent.click(screen.getByText('Kill'));
    await screen.findByText('Kill 2 jobs?');
    listed = [2];
    const [, yes] = screen.getAllByText('Kill');
    if (yes) await userEvent.click(yes);
    await waitFor(() => expect(done).toEqual([{ path: '/api/jobs/kill', ids: [2] }]));
  });

  it('is nothing where the list has none of them', async () => {
    bar();
    listed = [];
    await userEvent.click(screen.getByText('Kill'));
    await screen.findByText('Nothing was changed. 3 left out: no longer in this list.');
    expect(done).toEqual([]);
  });
});
