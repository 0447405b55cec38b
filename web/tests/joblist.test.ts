import { afterEach, describe, expect, it, vi } from 'vitest';
import { atLeast } from '../src/api/data';
import { JOB_SORTS, left, merge, type JobSort, type Order } from '../src/api/joblist';
import { JOB_STATES, type Job } from '../src/api/types';

const job = (id: number, state = 'queued', more: Partial<Job> = {}) =>
  ({ id, state, name: `j${id}`, priority: 5, attempt: null, ended_at: null, ...more }) as Job;
const ids = (jobs: Job[]) => jobs.map((one) => one.id);

describe('a list of jobs', () => {
  it('takes what has changed and drops what no longer fits', () => {
    const loaded = { jobs: [job(3), job(2), job(1)], next: null };
    const { jobs } = merge(loaded, [2, 3], [job(3, 'running')], 'desc');
    expect(jobs.map((one) => [one.id, one.state])).toEqual([
      [3, 'running'],
      [1, 'queued'],
    ]);
  });
  it('puts what is new in its place', () => {
    const loaded = { jobs: [job(9), job(5)], next: null };
    expect(ids(merge(loaded, [], [job(10), job(7)], 'desc').jobs)).toEqual([10, 9, 7, 5]);
  });
  it('leaves what lies beyond the loaded part to its page', () => {
    const loaded = { jobs: [job(9), job(8)], next: 8 };
    expect(ids(merge(loaded, [3], [job(3)], 'desc').jobs)).toEqual([9, 8]);
    const rising = { jobs: [job(1), job(2)], next: 2 };
    expect(ids(merge(rising, [5], [job(5)], 'asc').jobs)).toEqual([1, 2]);
  });
  it('moves a job whose priority has changed, and lets it go beyond the loaded part', () => {
    const loaded = {
      jobs: [job(4, 'queued', { priority: 1 }), job(1), job(2)],
      next: '5.2',
    };
    const front = merge(loaded, [2], [job(2, 'queued', { priority: 0 })], 'asc', 'priority');
    expect(ids(front.jobs)).toEqual([2, 4, 1]);
    const gone = merge(loaded, [4], [job(4, 'queued', { priority: 9 })], 'asc', 'priority');
    expect(ids(gone.jobs)).toEqual([1, 2]);
    expect(gone.next).toBe('5.2');
  });
  it('has those that have not ended last in both directions', () => {
    const ended = (id: number, at: number) => job(id, 'failed', { ended_at: at });
    const loaded = { jobs: [ended(2, 70), ended(1, 50), job(9), job(3)], next: null };
    expect(ids(merge(loaded, [9], [ended(9, 60)], 'desc', 'ended').jobs)).toEqual([2, 9, 1, 3]);
    const rising = { jobs: [ended(1, 50), ended(2, 70), job(3), job(9)], next: null };
    expect(ids(merge(rising, [3], [ended(3, 90)], 'asc', 'ended').jobs)).toEqual([1, 2, 3, 9]);
  });
});

/** As the daemon lists them; see goes_before in src/core/job_sort.cpp. */
function listed(jobs: readonly Job[], sort: JobSort, order: Order): Job[] {
  const key = (one: Job) =>
    ({
      id: null,
      submitted: null,
      priority: one.priority,
      state: JOB_STATES.indexOf(one.state),
      started: one.attempt ?? null,
      ended: one.ended_at,
    })[sort];
  const some = jobs.filter((one) => key(one) !== null);
  const none = jobs.filter((one) => key(one) === null);
  const sign = order === 'asc' ? 1 : -1;
  some.sort((a, b) => sign * ((key(a) ?? 0) - (key(b) ?? 0) || a.id - b.id));
  none.sort((a, b) => sign * (a.id - b.id));
  return [...some, ...none];
}

/** The same numbers every time. */
function dice(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
}

describe.each(JOB_SORTS)('a list by %s', (sort) => {
  it.each(['asc', 'desc'] as const)('stays what the daemon would give, %s', (order) => {
    const roll = dice(sort.length * 7 + order.length);
    const any = (id: number): Job => {
      const state = JOB_STATES[roll(7)] ?? 'queued';
      return job(id, state, {
        priority: 3 + roll(4),
        attempt: roll(3) ? 1 + roll(1000) : null,
        ended_at: roll(2) ? 1000 + roll(20) : null,
      });
    };
    let truth = Array.from({ length: 60 }, (_, i) => any(i + 1));
    const all = listed(truth, sort, order);
    const loaded = all.slice(0, 25);
    const last = loaded.at(-1);
    if (!last) throw new Error('nothing is loaded');
    const place = {
      id: null,
      submitted: null,
      priority: last.priority,
      state: JOB_STATES.indexOf(last.state),
      started: last.attempt ?? null,
      ended: last.ended_at,
    }[sort];
    let list = { jobs: loaded, next: place === null ? last.id : `${place}.${last.id}` };
    for (let step = 0; step < 40; step += 1) {
      const changed = Array.from({ length: 1 + roll(6) }, () => 1 + roll(60));
      const gone = new Set(roll(5) ? [] : changed.slice(0, 1));
      const fresh = new Map(changed.map((id) => [id, any(id)]));
      truth = truth.filter((one) => !gone.has(one.id)).map((one) => fresh.get(one.id) ?? one);
      const found = truth.filter((one) => fresh.has(one.id));
      list = { ...list, ...merge(list, changed, found, order, sort), next: list.next };
    }
    // All that stands no later than where the next page begins.
    const probe = { ...last, id: last.id };
    const whole = listed([...truth.filter((one) => one.id !== last.id), probe], sort, order);
    const within = new Set(
      ids(
        whole.slice(
          0,
          whole.findIndex((one) => one === probe),
        ),
      ),
    );
    const now = truth.find((one) => one.id === last.id);
    const expected = listed(truth, sort, order).filter(
      (one) => within.has(one.id) || (one === now && ids(list.jobs).includes(one.id)),
    );
    expect(ids(list.jobs)).toEqual(ids(expected));
  });
});

describe('what has left a list', () => {
  const before = [job(9), job(8), job(7)];
  it('is what is neither there nor beyond what is loaded', () => {
    expect(left(before, { jobs: [job(9), job(7)], next: null }, 'desc')).toEqual([8]);
    // Two have come at the front, and what no longer fits is loaded again when it is scrolled to.
    const pushed = { jobs: [job(11), job(10), job(9)], next: 9 };
    expect(left(before, pushed, 'desc')).toEqual([]);
    expect(left(before, { jobs: [job(11), job(10), job(8)], next: 8 }, 'desc')).toEqual([9]);
  });
});

describe('a long list', () => {
  it('takes a change in no time', () => {
    const jobs = Array.from({ length: 100_000 }, (_, i) => job(100_000 - i));
    const begin = performance.now();
    for (let i = 0; i < 20; i += 1) {
      merge({ jobs, next: null }, [5], [job(5, 'running')], 'desc', 'state');
    }
    // A few milliseconds each, and a busy machine has time for more.
    expect((performance.now() - begin) / 20).toBeLessThan(200);
  });
});

describe('a search through very many', () => {
  afterEach(() => vi.unstubAllGlobals());

  /** Answers with one job in `every`, 1,000 looked through at a time, from 10,000 on down. */
  function daemon(every: number) {
    const asked: (string | null)[] = [];
    vi.stubGlobal('fetch', (request: Request) => {
      const after = new URL(request.url).searchParams.get('after');
      asked.push(after);
      const from = Number(after ?? 10_001) - 1;
      const last = Math.max(1, from - 999);
      const jobs = [];
      for (let id = from; id >= last; id -= 1) if (id % every === 0) jobs.push(job(id));
      return Promise.resolve(
        new Response(JSON.stringify({ jobs, next: last > 1 ? last : null }), {
          headers: { 'Content-Type': 'application/json' },
        }),
      );
    });
    return asked;
  }

  it('goes on over pages without a match until there is one', async () => {
    const asked = daemon(2_500);
    const first = await atLeast(1, { q: 'many' });
    expect(ids(first.jobs)).toEqual([10_000]);
    const second = await atLeast(1, { q: 'many' }, first.next ?? undefined);
    expect(ids(second.jobs)).toEqual([7_500]);
    expect(asked).toEqual([null, '9001', '8001']);
  });
  it('ends where there is nothing more', async () => {
    const asked = daemon(99_999);
    expect(await atLeast(1, { q: 'nobody' })).toEqual({ jobs: [], next: null });
    expect(asked).toHaveLength(10);
  });
});
