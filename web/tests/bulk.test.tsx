import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { queryClient } from '../src/api/data';
import { JOB_STATES, type JobState } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import { BulkBar } from '../src/pages/state/bulk';
import { OverlayProvider } from '../src/ui/overlay';

/** What the daemon is told to do, and what of the list it still has. */
let done: { path: string; ids: unknown; to?: string }[];
let listed: number[];
/** Of those that are not queued, and of those that wait for a reason. */
let states: Record<number, string>;
let whys: Record<number, string>;
let lookups: URLSearchParams[];

/** 3,5-9 */
const isAmong = (id: number, ranges: string) =>
  ranges.split(',').some((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return first <= id && id <= last;
  });

beforeEach(() => {
  queryClient.clear();
  done = [];
  lookups = [];
  listed = [1, 2, 3];
  states = {};
  whys = {};
  narrowed = ['queued'];
  vi.stubGlobal('fetch', async (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    let body: unknown;
    if (request.method === 'GET') {
      lookups.push(searchParams);
      const after = Number(searchParams.get('after') ?? 0);
      const wanted = searchParams.get('state')?.split(',') ?? [];
      const of = (id: number) => states[id] ?? 'queued';
      const [id, ...more] = listed
        .filter((one) => isAmong(one, searchParams.get('ids') ?? ''))
        .filter((one) => one > after && wanted.includes(of(one)));
      // A page at a time, each with one job.
      const jobs = id ? [{ id, state: of(id), why: { kind: whys[id] ?? 'order' } }] : [];
      body = { jobs, next: more.length ? id : null };
    } else {
      const { ids, to } = (await request.json()) as { ids: unknown; to?: string };
      done.push({ path: pathname, ids, ...(to ? { to } : {}) });
      body = {
        cancelled: ids,
        held: [1],
        moved: listed,
        revived: listed,
        expedited: listed,
      };
    }
    return new Response(JSON.stringify(body), {
      headers: { 'Content-Type': 'application/json' },
    });
  });
});

let narrowed: JobState[] = ['queued'];
const still = async (ids: readonly number[]) =>
  (await api.parts(ids, [], { state: narrowed.join(','), q: 'lr' })).map((job) => job.id);

const bar = (ids = [1, 2, 3]) =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <BulkBar
            ids={ids}
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

  it('is counted as everything else is', async () => {
    const many = Array.from({ length: 1_200 }, (_, i) => i + 1);
    vi.spyOn(api, 'parts').mockResolvedValue(many.map((id) => ({ id })) as never);
    vi.spyOn(api, 'pause').mockResolvedValue({ held: many } as never);
    bar(many);
    await userEvent.click(screen.getByText('Pause'));
    expect(await screen.findByText('1,200 paused.')).toBeTruthy();
    vi.restoreAllMocks();
  });

  it('is nothing where the list has none of them', async () => {
    bar();
    listed = [];
    await userEvent.click(screen.getByText('Kill'));
    await screen.findByText('Nothing was changed. 3 left out: no longer in this list.');
    expect(done).toEqual([]);
  });
});

const click = async (name: string) => userEvent.click(await screen.findByText(name));
/** Of the question, not of the bar. */
const yes = async (name: string) =>
  userEvent.click(within(await screen.findByRole('alertdialog')).getByText(name));
const more = async (item: string) => {
  await userEvent.click(screen.getByLabelText('More actions'));
  await userEvent.click(await screen.findByRole('menuitem', { name: item }));
};

describe('running again', () => {
  beforeEach(() => (narrowed = [...JOB_STATES]));

  it('is asked about where it is many, with those that have succeeded', async () => {
    states = { 1: 'failed', 2: 'succeeded', 3: 'running' };
    bar();
    await click('Run again');
    await screen.findByText('Run 2 jobs again?');
    await screen.findByText('They start anew, under their ids. 1 has succeeded already.');
    await click('Cancel');
    expect(done).toEqual([]);
    await click('Run again');
    await yes('Run again');
    await waitFor(() => expect(done).toEqual([{ path: '/api/jobs/retry', ids: '1-2' }]));
  });
  it('is asked about where it has succeeded, and not where one has failed', async () => {
    states = { 1: 'succeeded' };
    listed = [1];
    const { unmount } = bar([1]);
    await click('Run again');
    await screen.findByText('It starts anew, under its id. 1 has succeeded already.');
    await click('Cancel');
    expect(done).toEqual([]);
    unmount();
    states = { 1: 'failed' };
    bar([1]);
    await click('Run again');
    await waitFor(() => expect(done).toEqual([{ path: '/api/jobs/retry', ids: '1' }]));
  });
});

describe('starting before all others', () => {
  beforeEach(() => (narrowed = ['queued', 'paused']));

  it('can be undone: who was held is held, the others wait as before', async () => {
    states = { 2: 'paused' };
    bar();
    await more('Start before all others');
    await screen.findByText('3 go before all others.');
    states = { 3: 'running' };
    await click('Undo');
    await waitFor(() =>
      expect(done).toEqual([
        { path: '/api/jobs/start', ids: '1-3' },
        { path: '/api/jobs/pause', ids: '1-2' },
        { path: '/api/jobs/resume', ids: '1' },
      ]),
    );
  });
  it('cannot be undone once they run, and that is said', async () => {
    bar();
    await more('Start before all others');
    await screen.findByText('3 go before all others.');
    states = { 1: 'running', 2: 'running', 3: 'failed' };
    await click('Undo');
    await screen.findByText(/^Too late/);
    expect(done).toHaveLength(1);
  });
  it('is asked about where one was to start later', async () => {
    whys = { 3: 'delayed' };
    bar();
    await more('Start before all others');
    await screen.findByText(/^1 is to start later/);
    expect(done).toEqual([]);
    await yes('Start before all others');
    await waitFor(() => expect(done).toEqual([{ path: '/api/jobs/start', ids: '1-3' }]));
  });
});

describe('moving to the front', () => {
  it('is asked about where it is many', async () => {
    bar();
    await more('Move to the front');
    await screen.findByText('Move 3 jobs to the front?');
    expect(done).toEqual([]);
    await yes('Move to the front');
    await waitFor(() =>
      expect(done).toEqual([{ path: '/api/jobs/move', ids: '1-3', to: 'first' }]),
    );
  });
  it('is done at once where it is one, which can be moved again', async () => {
    listed = [1];
    bar([1]);
    await more('Move to the front');
    await waitFor(() => expect(done).toHaveLength(1));
  });
});
