// What the pages know of the daemon, shared among them and kept up to date by the live connection.

import {
  QueryClient,
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
  type InfiniteData,
} from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { ApiError, access, api, ranges, type JobFilter, type JobPlace } from './client';
import { paced } from '../lib/pace';
import { merge } from './joblist';
import { Live, type LiveState } from './live';
import { record } from './samples';
import type { Gpu, HistoryEvent, Job, JobPage, LiveStatus, Status } from './types';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A browser that is offline still reaches a daemon on its own machine.
      networkMode: 'always',
      // The live connection says when something is old.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        !(error instanceof ApiError && error.status >= 400) && failures < 2,
      retryDelay: 400,
    },
    mutations: { networkMode: 'always' },
  },
});

type EventsListener = (events: HistoryEvent[]) => void;
const listeners = new Set<EventsListener>();

/** Queries that follow from what jobs do, and from what is done to cards, queues and the instance. */
const FOLLOWING = ['batches', 'queues', 'timeline', 'backlog', 'scheduler'];
const OF_THE_INSTANCE = ['status', 'gpus', 'rules'];
const FOLLOW_EVERY = 700;
/** The daemon reads many logs for these. */
const RESULTS_EVERY = 3_000;

const again = (keys: readonly string[]) => () => {
  for (const key of keys) void queryClient.invalidateQueries({ queryKey: [key] });
};
const follow = paced(again(FOLLOWING), FOLLOW_EVERY);
const followInstance = paced(again(OF_THE_INSTANCE), FOLLOW_EVERY);
const followResults = paced(again(['results']), RESULTS_EVERY);

function onEvents(events: HistoryEvent[]): void {
  for (const listener of listeners) listener(events);
  const jobs = new Set(events.map((event) => event.job ?? null));
  // What is removed is not named one by one.
  const removed = events.some((event) => event.kind === 'removed');
  // One look through what is known, however many jobs have changed.
  void queryClient.invalidateQueries({
    predicate: ({ queryKey: [what, id] }) => what === 'job' && (removed || jobs.has(id as number)),
  });
  if (jobs.has(null)) followInstance();
  follow();
  followResults();
}

function withNews(old: Status | undefined, news: Status | LiveStatus): Status | undefined {
  if ('version' in news) return news;
  if (!old) return undefined;
  const { probe_error: error, ...rest } = news;
  return { ...old, ...rest, probe: { ...old.probe, error } };
}

export const live = new Live({
  events: onEvents,
  gpus: (gpus) => {
    record(gpus);
    queryClient.setQueryData<Gpu[]>(['gpus'], gpus);
  },
  status: (status) => {
    queryClient.setQueryData<Status>(['status'], (old) => withNews(old, status));
  },
  back: () => void queryClient.invalidateQueries(),
});

export function useLive(): LiveState {
  return useSyncExternalStore(live.subscribe, live.snapshot);
}

export function useEvents(listener: EventsListener): void {
  useEffect(() => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, [listener]);
}

const ASK_AGAIN = 2_000;

export function useSession() {
  return useQuery({
    queryKey: ['session'],
    queryFn: () => access.session(),
    staleTime: Infinity,
    // Before it is known who is looking nothing can be done.
    refetchInterval: ({ state: { data, error } }) =>
      data || (error instanceof ApiError && error.denied) ? false : ASK_AGAIN,
  });
}

/** What this browser may do; undefined: that is not known yet. */
export const useScope = () => useSession().data?.scope;

/** Whether this browser may change anything. */
export const useMayChange = (): boolean => useScope() === 'full';

export const useStatus = () =>
  useQuery({ queryKey: ['status'], queryFn: ({ signal }) => api.status(signal) });

export const useGpus = () =>
  useQuery({
    queryKey: ['gpus'],
    queryFn: async ({ signal }) => {
      const gpus = await api.gpus(signal);
      record(gpus);
      return gpus;
    },
  });

const PAGE = 200;
/** The most that the daemon gives at once. */
const LONGEST_PAGE = 10_000;
const PATCH_EVERY = 400;
/** More changed jobs than this at once: the list is asked for anew. */
const PATCH_MOST = 400;
/** And not again for so many times as long as that took. */
const REST = 3;
const REST_AFTER_FAILURE = 3_000;

type Pages = InfiniteData<JobPage, JobPlace | undefined>;

/**
 * At least so many jobs of a list, from a place on. The daemon looks through a part of its jobs for each
 * answer: where a search finds few of many, pages are empty and yet there is more.
 */
export async function atLeast(
  wanted: number,
  filter: JobFilter,
  from?: JobPlace,
  signal?: AbortSignal,
): Promise<JobPage> {
  const jobs: Job[] = [];
  let after = from;
  do {
    const limit = Math.min(LONGEST_PAGE, Math.max(PAGE, wanted - jobs.length));
    const page = await api.jobs(
      { ...filter, ...(after === undefined ? {} : { after }), limit },
      signal,
    );
    for (const job of page.jobs) jobs.push(job);
    after = page.next ?? undefined;
  } while (after !== undefined && jobs.length < Math.max(1, wanted));
  return { jobs, next: after ?? null };
}

/** What has happened to the jobs of a list and is not in it yet. */
interface News {
  changed: Set<number>;
  /** The first of the jobs that have come; Infinity: none has. */
  grown: number;
  /** More has happened than is told job by job, or jobs have been removed, and nobody said which. */
  anew: boolean;
}

const noNews = (): News => ({ changed: new Set(), grown: Infinity, anew: false });

/** What is told of so many jobs is told of the list. */
function tally(news: News): News {
  if (news.changed.size > PATCH_MOST) news.anew = true;
  if (news.anew) news.changed.clear();
  return news;
}

const together = (one: News, other: News): News =>
  tally({
    changed: new Set([...one.changed, ...other.changed]),
    grown: Math.min(one.grown, other.grown),
    anew: one.anew || other.anew,
  });

const only = (page: JobPage): Pages => ({ pages: [page], pageParams: [undefined] });

/** All that is loaded, with these of its jobs as they are now. */
async function lookedAt(
  old: Pages,
  ids: readonly number[],
  filter: JobFilter,
  signal: AbortSignal,
): Promise<Pages> {
  const { order = 'asc', sort = 'id' } = filter;
  const page = await api.jobs({ ...filter, ids: ranges(ids), limit: PATCH_MOST }, signal);
  const jobs = old.pages.flatMap((one) => one.jobs);
  const next = old.pages.at(-1)?.next ?? null;
  return only(merge({ jobs, next }, ids, page.jobs, order, sort));
}

/** The list with the news in it. Rows that nothing has happened to stay the same objects. */
async function patched(
  old: Pages,
  { changed, grown, anew: whole }: News,
  filter: JobFilter,
  signal: AbortSignal,
): Promise<{ list: Pages; anew: boolean }> {
  const { order = 'asc', sort = 'id' } = filter;
  const jobs = old.pages.flatMap((page) => page.jobs);
  const asked = [...changed];
  const found: Job[] = [];
  let anew = whole;
  if (!anew && grown < Infinity) {
    const page = await api.jobs(
      { ...filter, sort: 'id', order: 'asc', after: grown - 1, limit: PATCH_MOST },
      signal,
    );
    found.push(...page.jobs);
    anew = page.next !== null;
  }
  if (anew) {
    return { list: only(await atLeast(jobs.length, filter, undefined, signal)), anew };
  }
  if (asked.length) {
    const page = await api.jobs({ ...filter, ids: ranges(asked), limit: PATCH_MOST }, signal);
    found.push(...page.jobs);
  }
  const next = old.pages.at(-1)?.next ?? null;
  return { list: only(merge({ jobs, next }, asked, found, order, sort)), anew };
}

/** A list of jobs that loads as it is scrolled and stays true while it is looked at. */
export function useJobList(filter: JobFilter) {
  const client = useQueryClient();
  const key = useMemo(() => ['jobs', filter] as const, [filter]);
  const ordered = useMemo(() => ({ order: 'desc' as const, ...filter }), [filter]);
  /** The rows that can be seen: when very much happens at once they are asked for before all the others. */
  const seen = useRef<readonly number[]>([]);
  const onSeen = useCallback((ids: readonly number[]) => void (seen.current = ids), []);
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => {
      if (pageParam !== undefined) return atLeast(1, ordered, pageParam, signal);
      // Once something was merged into it all that is loaded is one page, and comes again as one.
      const [only, ...others] = client.getQueryData<Pages>(key)?.pages ?? [];
      const loaded = others.length ? 1 : (only?.jobs.length ?? 1);
      return atLeast(loaded, ordered, undefined, signal);
    },
    initialPageParam: undefined as JobPlace | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
    // Nobody has kept it true while nobody looked at it.
    staleTime: 0,
    // To compare a hundred thousand rows takes longer than to merge one.
    structuralSharing: false,
  });

  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    let news = noNews();
    let busy = false;
    /** A list that is long takes long to ask for: it is not asked for all the time. */
    let rest = 0;
    /** Something has happened since the rows that can be seen were asked for. */
    let stirred = false;
    // A page on its way is put behind the list as it was when the page was asked for.
    const loading = () => client.isFetching({ queryKey: key, exact: true }) > 0;

    /** Unless the list has become another one meanwhile. */
    const put = (old: Pages, list: Pages): boolean => {
      signal.throwIfAborted();
      if (loading() || client.getQueryData(key) !== old) return false;
      client.setQueryData<Pages>(key, list);
      return true;
    };

    const patch = async () => {
      if (busy || loading()) {
        ask();
        return;
      }
      let old = client.getQueryData<Pages>(key);
      if (!old) return;
      let taken = noNews();
      busy = true;
      try {
        const resting = Date.now() < rest;
        if (news.anew && stirred && seen.current.length) {
          stirred = false;
          const list = await lookedAt(old, seen.current, ordered, signal);
          if (put(old, list)) old = list;
          else stirred = true;
        }
        if (resting) {
          ask();
          return;
        }
        taken = news;
        news = noNews();
        const begin = Date.now();
        const { list, anew } = await patched(old, taken, ordered, signal);
        if (!put(old, list)) {
          news = together(taken, news);
          ask();
        }
        if (anew) rest = Date.now() + REST * (Date.now() - begin);
      } catch {
        if (signal.aborted) return;
        news = together(taken, news);
        ask();
        rest = Date.now() + REST_AFTER_FAILURE;
      } finally {
        busy = false;
      }
    };

    const ask = paced(() => void patch(), PATCH_EVERY);
    const listener: EventsListener = (events) => {
      for (const event of events) {
        if (event.kind === 'submitted' && event.job) {
          news.grown = Math.min(news.grown, event.job);
        } else if (event.job) {
          news.changed.add(event.job);
        } else if (event.kind === 'removed') {
          news.anew = true;
        }
      }
      tally(news);
      stirred = true;
      if (news.changed.size || news.grown < Infinity || news.anew) ask();
    };
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      ask.cancel();
      over.abort();
    };
  }, [client, key, ordered]);

  const jobs = useMemo(() => query.data?.pages.flatMap((page) => page.jobs) ?? [], [query.data]);
  return { ...query, jobs, onSeen };
}
