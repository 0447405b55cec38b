import { QueryClientProvider } from '@tanstack/react-query';
import { act, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { live, queryClient } from '../src/api/data';
import type { JobDetail } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import JobPage from '../src/pages/state/job';
import { OverlayProvider } from '../src/ui/overlay';
import { FakeSource } from './fakesource';

const GIB = 1024 ** 3;

const attempt = {
  id: 70,
  number: 1,
  state: 'running',
  gpu_indices: [0],
  started_at: 1_000,
  ended_at: null,
};
const detail = {
  job: {
    id: 7,
    name: 'train',
    state: 'running',
    queue: 'default',
    priority: 5,
    gpus: 1,
    gpus_max: 1,
    gpu_memory: GIB,
    gpu_indices: [0],
    retries: 0,
    cwd: '/data',
    submitted_at: 1_000,
    started_at: 1_000,
    ended_at: null,
  },
  attempts: [attempt],
  commands: [{ shell: true, argv: ['python train.py'] }],
  after: [],
  start_at: null,
  env: [],
  rules: {},
} as unknown as JobDetail;
const over = {
  ...detail,
  job: { ...detail.job, state: 'succeeded', ended_at: 9_000 },
  attempts: [{ ...attempt, state: 'succeeded', ended_at: 9_000 }],
} as unknown as JobDetail;

/** What the daemon has of the job; null: nothing. */
let has: JobDetail | null;
let used: number;
let posted: { path: string; body: unknown }[];

const answers = (pathname: string): unknown => {
  switch (pathname) {
    case '/api/session':
      return { via: 'token', scope: 'full', user: 'u', csrf: null };
    case '/api/status':
      return { version: '1', pid: 7, problems: [], space: {}, probe: {} };
    case '/api/jobs/7/usage':
      return { claim: null, points: [{ t: 2_000, memory: used * GIB }] };
    default:
      return { events: [] };
  }
};

let seq = 100;
const settle = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms));
async function happens(event: object) {
  FakeSource.all.at(-1)?.tell('event', { seq: seq++, ...event });
  await settle(1_000);
}

beforeEach(async () => {
  vi.useFakeTimers();
  queryClient.clear();
  has = detail;
  used = 1;
  posted = [];
  vi.stubGlobal('EventSource', FakeSource);
  vi.stubGlobal('fetch', async (request: Request | string) => {
    if (typeof request === 'string') return new Response(null, { status: 416 });
    const { pathname } = new URL(request.url);
    if (request.method === 'POST') {
      posted.push({ path: pathname, body: await request.json() });
      return Response.json({ ids: [8], killed: [], cancelled: [8] });
    }
    if (pathname !== '/api/jobs/7') return Response.json(answers(pathname));
    return has
      ? Response.json(has)
      : Response.json({ error: { code: 'not_found', message: 'no job 7' } }, { status: 404 });
  });
  live.start();
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>
          <JobPage id={7} />
        </OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );
  await settle(200);
});

afterEach(() => {
  live.stop();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('a job that is looked at', () => {
  it('tells at its end what it has used until then', async () => {
    expect(screen.getAllByText('1 GiB').length).toBeGreaterThan(0);
    has = over;
    used = 5;
    await happens({ kind: 'succeeded', job: 7 });
    await settle(10_000);
    expect(screen.getByText('5 GiB')).toBeTruthy();
  });

  it('is gone, with all that could be done to it, when somebody else has it forgotten', async () => {
    has = over;
    await happens({ kind: 'succeeded', job: 7 });
    expect(screen.getByText('Run again')).toBeTruthy();
    has = null;
    await happens({ kind: 'removed', detail: '1 jobs, the first of them 7' });
    expect(screen.getByText('This job has been forgotten')).toBeTruthy();
    expect(screen.queryByText('Run again')).toBeNull();
  });

  it('stays where it only cannot be looked at again', async () => {
    vi.spyOn(api, 'job').mockRejectedValue(new Error('a tunnel that broke'));
    await happens({ kind: 'paused', job: 7 });
    await settle(2_000);
    expect(screen.getByText('Kill')).toBeTruthy();
  });
});

describe('a job that is submitted again, changed', () => {
  it('can be taken back', async () => {
    fireEvent.click(screen.getByText('Edit and resubmit'));
    await settle();
    fireEvent.click(screen.getByText('Submit'));
    await settle();
    expect(posted.map(({ path }) => path)).toEqual(['/api/jobs']);
    expect(screen.getByText('Job 8 was submitted.')).toBeTruthy();
    fireEvent.click(screen.getByText('Undo'));
    await settle();
    expect(posted.at(-1)).toEqual({ path: '/api/jobs/kill', body: { ids: [8] } });
  });
});
