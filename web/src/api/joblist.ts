// A list of jobs of which only a part is loaded, kept true by what the daemon tells.

import type { JobPlace } from './client';
import { JOB_STATES, type Job } from './types';

export type Order = 'asc' | 'desc';
/** What the daemon sorts jobs by. */
export const JOB_SORTS = ['id', 'submitted', 'priority', 'state', 'started', 'ended'] as const;
export type JobSort = (typeof JOB_SORTS)[number];

/** Where a job stands in a sorted list. No key: sorted by id, or it has none, and then it comes last. */
interface Standing {
  key: number | null;
  id: number;
}

const keyOf: Record<JobSort, (job: Job) => number | null> = {
  id: () => null,
  submitted: () => null, // ids are given out in that order
  priority: (job) => job.priority,
  state: (job) => JOB_STATES.indexOf(job.state),
  // Attempts get their ids in the order in which they start.
  started: (job) => job.attempt ?? null,
  ended: (job) => job.ended_at,
};

function standing(job: Job, sort: JobSort): Standing {
  return { key: keyOf[sort](job), id: job.id };
}

/** 17, or 5.17 with a key. */
function standingOf(place: JobPlace): Standing {
  const [first = '0', second] = String(place).split('.');
  return second === undefined
    ? { key: null, id: Number(first) }
    : { key: Number(first), id: Number(second) };
}

/** Below 0: `a` is listed before `b`. As the daemon does: equal ones by id, those without a key last. */
function compare(a: Standing, b: Standing, order: Order): number {
  if ((a.key === null) !== (b.key === null)) return a.key === null ? 1 : -1;
  const rising = (a.key ?? 0) - (b.key ?? 0) || a.id - b.id;
  return order === 'asc' ? rising : -rising;
}

export interface Loaded {
  jobs: Job[];
  /** Where the part that is not loaded begins; null: everything is. */
  next: JobPlace | null;
}

/**
 * `asked` were looked up again with the list's own filter; `found` are those of them that fit it.
 * The others are no longer part of the list. What lies beyond the loaded part comes with its page.
 */
export function merge(
  loaded: Loaded,
  asked: readonly number[],
  found: readonly Job[],
  order: Order,
  sort: JobSort = 'id',
): Loaded {
  const { next } = loaded;
  const touched = new Set(asked);
  for (const job of found) touched.add(job.id);
  const end = next === null ? null : standingOf(next);
  const fresh = [...new Map(found.map((job) => [job.id, job])).values()]
    .map((job) => ({ job, at: standing(job, sort) }))
    .filter(({ at }) => end === null || compare(at, end, order) <= 0)
    .sort((a, b) => compare(a.at, b.at, order));
  if (!touched.size) return loaded;
  // Both are in order: there may be a hundred thousand of the one and a handful of the other.
  const jobs: Job[] = [];
  let i = 0;
  for (const job of loaded.jobs) {
    if (touched.has(job.id)) continue;
    for (let first = fresh[i]; first; first = fresh[i]) {
      if (compare(first.at, standing(job, sort), order) > 0) break;
      jobs.push(first.job);
      i += 1;
    }
    jobs.push(job);
  }
  for (; i < fresh.length; i += 1) {
    const last = fresh[i];
    if (last) jobs.push(last.job);
  }
  return { jobs, next };
}

/** Which of the jobs that were loaded belong to the list no more, as far as it is loaded. */
export function left(
  before: readonly Job[],
  { jobs, next }: Loaded,
  order: Order,
  sort: JobSort = 'id',
): number[] {
  const there = new Set(jobs.map((job) => job.id));
  const end = next === null ? null : standingOf(next);
  return before
    .filter((job) => !there.has(job.id))
    .filter((job) => end === null || compare(standing(job, sort), end, order) <= 0)
    .map((job) => job.id);
}
