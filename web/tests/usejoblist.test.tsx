import { QueryClientProvider, onlineManager } from '@tanstack/react-query';
import { act, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { live, queryClient, useJobList } from '../src/api/data';
import type { Job, JobPage } from '../src/api/types';
import { FakeSource } from './fakesource';

type Asked = Parameters<typeof api.jobs>[0];

/** The daemon's jobs by id, the newest first, three to a page. */
let states: Map<number, string>;
let asked: Asked[];
/** What an answer waits for, or fails of. */
let before: (query: Asked) => Promise<void> | undefined;
/** How often somebody has looked into a row. */
let looks: number;

const PAGE = 3;

function row(id: number, state: string): Job {
  const job = { id, state, priority: 5, attempt: null, ended_at: null };
  return Object.defineProperty(job, 'command', {
    enumerable: true,
    get: () => {
      looks += 1;
      return 'true';
    },
  }) as unknown as Job;
}

function page({ ids, after, order }: Asked): JobPage {
  const wanted = ids?.split(',').map(Number);
  const all = [...states.keys()].sort((a, b) => (order === 'asc' ? a - b : b - a));
  const fit = all
    .filter((id) => !wanted || wanted.includes(id))
    .filter((id) => after === undefined || (order === 'asc' ? id > +after : id < +after));
  const shown = fit.slice(0, PAGE);
  return {
    jobs: shown.map((id) => row(id, states.get(id) ?? '')),
    next: fit.length > shown.length ? (shown.at(-1) ?? null) : null,
  };
}

let seq = 100;
const settle = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));
/** Long enough for whatever follows from an event. */
const ENOUGH = 1_500;

async function happens(id: number, kind: string, state: string) {
  states.set(id, state);
  FakeSource.all.at(-1)?.tell('event', { seq: seq++, kind, job: id });
  await settle(200);
}

beforeEach(async () => {
  vi.useFakeTimers();
  queryClient.clear();
  states = new Map([1, 2, 3, 4, 5].map((id) => [id, 'queued']));
  asked = [];
  looks = 0;
  before = () => undefined;
  vi.stubGlobal('EventSource', FakeSource);
  vi.spyOn(api, 'status').mockResolvedValue({ pid: 7 } as never);
  vi.spyOn(api, 'events').mockResolvedValue({ events: [] } as never);
  vi.spyOn(api, 'jobs').mockImplementation(async (query) => {
    asked.push(query);
    const answer = page(query);
    await before(query);
    return answer;
  });
  live.start();
  await settle();
});

afterEach(() => {
  live.stop();
  onlineManager.setOnline(true);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const FILTER = { order: 'desc' } as const;

async function list() {
  const hook = renderHook(() => useJobList(FILTER), {
    wrapper: ({ children }: { children: ReactNode }) => (
      <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
    ),
  });
  await settle();
  const shown = () => hook.result.current.jobs.map(({ id, state }) => `${id} ${state}`);
  return { ...hook, shown };
}

/** Until what it gives is called. */
function held() {
  let release = () => undefined as void;
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { until, release };
}

describe('a list that is looked at', () => {
  it('takes in what happens, and leaves the other rows as they are', async () => {
    const { shown, result } = await list();
    expect(shown()).toEqual(['5 queued', '4 queued', '3 queued']);
    const [, four] = result.current.jobs;
    looks = 0;
    await happens(6, 'submitted', 'queued');
    await happens(5, 'started', 'running');
    await settle(ENOUGH);
    expect(shown()).toEqual(['6 queued', '5 running', '4 queued', '3 queued']);
    expect(result.current.jobs[2]).toBe(four);
    // However many there are: not even to compare them.
    expect(looks).toBe(0);
  });

  it('takes in what happens while a page is on its way', async () => {
    const { shown, result } = await list();
    const news = held();
    const more = held();
    before = ({ ids }) => (ids ? news.until : more.until);
    await happens(5, 'started', 'running');
    await settle(ENOUGH);
    expect(asked.at(-1)?.ids).toBe('5');
    void act(() => void result.current.fetchNextPage());
    await settle();
    expect(asked.at(-1)?.after).toBe(3);
    news.release();
    await settle();
    more.release();
    await settle(ENOUGH);
    expect(shown()).toEqual(['5 running', '4 queued', '3 queued', '2 queued', '1 queued']);
  });

  it('asks again for what it could not learn', async () => {
    const { shown } = await list();
    let failures = 1;
    before = () => (failures-- > 0 ? Promise.reject(new Error('a tunnel that broke')) : undefined);
    await happens(5, 'started', 'running');
    await settle(ENOUGH);
    expect(shown()[0]).toBe('5 queued');
    await settle(5_000);
    expect(shown()[0]).toBe('5 running');
  });
});

describe('a list of which very much changes at once', () => {
  it('is asked for what can be seen before all that is loaded', async () => {
    const { shown, result } = await list();
    act(() => result.current.onSeen([5, 3]));
    const all = held();
    before = ({ ids }) => (ids ? undefined : all.until);
    for (const id of states.keys()) states.set(id, 'paused');
    for (let id = 1; id <= 500; id += 1) {
      FakeSource.all.at(-1)?.tell('event', { seq: seq++, kind: 'held', job: id });
    }
    await settle(ENOUGH);
    expect(asked.slice(-2).map(({ ids }) => ids)).toEqual(['3,5', undefined]);
    expect(shown()).toEqual(['5 paused', '4 queued', '3 paused']);
    await settle(10_000);
    all.release();
    await settle(ENOUGH);
    expect(shown()).toEqual(['5 paused', '4 paused', '3 paused']);
    // It took long, and is not asked for again soon: what can be seen is.
    const known = asked.length;
    for (const id of states.keys()) states.set(id, 'queued');
    for (let id = 1; id <= 500; id += 1) {
      FakeSource.all.at(-1)?.tell('event', { seq: seq++, kind: 'released', job: id });
    }
    await settle(ENOUGH);
    expect(asked.slice(known).map(({ ids }) => ids)).toEqual(['3,5']);
    expect(shown()).toEqual(['5 queued', '4 paused', '3 queued']);
    await settle(60_000);
    expect(shown()).toEqual(['5 queued', '4 queued', '3 queued']);
  });
});

describe('a list that somebody comes back to', () => {
  it('is asked for again', async () => {
    const first = await list();
    first.unmount();
    await happens(5, 'killed', 'killed');
    const { shown } = await list();
    expect(shown()[0]).toBe('5 killed');
  });

  it('has what had not been taken in when it was left', async () => {
    const first = await list();
    const news = held();
    before = ({ ids }) => (ids ? news.until : undefined);
    await happens(5, 'started', 'running');
    await settle(ENOUGH);
    await happens(4, 'started', 'running');
    first.unmount();
    const { shown } = await list();
    news.release();
    await settle(ENOUGH);
    expect(shown()).toEqual(['5 running', '4 running', '3 queued']);
  });
});

it('a browser that is offline is told by a daemon on its own machine', async () => {
  onlineManager.setOnline(false);
  const { shown } = await list();
  expect(shown()).toHaveLength(PAGE);
});
