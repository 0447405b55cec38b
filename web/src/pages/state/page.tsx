import type { RowSelectionState } from '@tanstack/react-table';
import { ArrowDownWideNarrow, ArrowUpNarrowWide, ListTree, Search } from 'lucide-react';
import { useQuery } from '@tanstack/react-query';
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { api, type JobPlace } from '../../api/client';
import { useGpus, useJobList, useLive, useMayChange, useStatus } from '../../api/data';
import { JOB_SORTS, left, type JobSort } from '../../api/joblist';
import { JOB_STATES, type JobState } from '../../api/types';
import { useLanguage } from '../../i18n';
import { count } from '../../lib/format';
import { leaves } from '../../lib/keys';
import { later } from '../../lib/later';
import { Button, Command, Empty, IconButton, Skeleton, StateIcon } from '../../ui/basic';
import { Segmented, Select } from '../../ui/fields';
import { Missing } from '../../ui/missing';
import { useOverlays } from '../../ui/overlay';
import { BulkBar } from './bulk';
import {
  REVERSE,
  apiFilter,
  firstOrder,
  formatFilter,
  useFilter,
  type Filter,
  type View,
} from './filter';
import { JobTable } from './table';

const Groups = later(() => import('./groups'));
const Timeline = later(() => import('./timeline'));

const SEARCH_WAIT = 250;
/** So many that are found are enough to begin with. */
const SCREENFUL = 200;

/** Where keys go on in the list. */
const list = () => document.querySelector<HTMLElement>('[data-job][tabindex="0"]');

/** Jobs by state of what the list is narrowed to; undefined: nobody counts that. */
function useCounts({ q, queue, batch }: Filter): Record<JobState, number> | undefined {
  const { data: status } = useStatus();
  const { data: queues } = useQuery({
    queryKey: ['queues'],
    queryFn: api.queues,
    enabled: queue !== '',
  });
  const { data: one } = useQuery({
    queryKey: ['batches', batch],
    queryFn: () => api.batch(Number(batch)),
    enabled: batch !== '',
  });
  if (q || (queue && batch)) return undefined;
  if (queue) return queues?.queues.find(({ name }) => name === queue)?.counts;
  return batch ? one?.counts : status?.counts;
}

function SearchBox({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useLanguage();
  const [text, setText] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  const [asked] = useState(() => new URLSearchParams(location.search).has('focus'));
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (asked) input.current?.focus();
  }, [asked]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(text), SEARCH_WAIT);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return (
    <div className="search">
      <Search size={15} aria-hidden />
      <input
        ref={input}
        data-search
        type="search"
        aria-label={t('jobs.search')}
        placeholder={t('jobs.search')}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (leaves(event, list())) return;
          if (event.key !== 'Enter' && event.key !== 'ArrowDown') return;
          event.preventDefault();
          if (text !== value) onChange(text);
          event.currentTarget.blur();
          list()?.focus();
        }}
      />
      <kbd aria-hidden>/</kbd>
    </div>
  );
}

function StateFilter({
  filter,
  counts,
  onChange,
}: {
  filter: Filter;
  counts: Record<JobState, number> | undefined;
  onChange: (f: Partial<Filter>) => void;
}) {
  const { t, language } = useLanguage();
  const toggle = (state: JobState) => {
    const on = filter.states.includes(state);
    onChange({
      states: on ? filter.states.filter((other) => other !== state) : [...filter.states, state],
    });
  };
  return (
    <div className="state-filter" role="group" aria-label={t('jobs.byState')}>
      {JOB_STATES.map((state) => (
        <button
          key={state}
          type="button"
          className={`state-chip badge-${state}`}
          aria-pressed={filter.states.includes(state)}
          onClick={() => toggle(state)}
        >
          <StateIcon state={state} size={13} />
          {t(`state.${state}`)}
          {counts && <strong>{count(counts[state], language)}</strong>}
        </button>
      ))}
    </div>
  );
}

/** What the columns' names do, where there are none or not all of them. */
function SortChoice({
  filter,
  onChange,
}: {
  filter: Filter;
  onChange: (f: Partial<Filter>) => void;
}) {
  const { t } = useLanguage();
  return (
    <div className="sort-choice">
      <Select
        hidden
        label={t('jobs.sort')}
        value={filter.sort}
        options={JOB_SORTS.map((sort) => [sort, t(`col.${sort}`)])}
        onChange={(name) => {
          const sort = JOB_SORTS.find((one) => one === name) ?? 'id';
          onChange({ sort, order: firstOrder(sort) });
        }}
      />
      <IconButton
        icon={filter.order === 'desc' ? ArrowDownWideNarrow : ArrowUpNarrowWide}
        label={t(filter.order === 'desc' ? 'jobs.descending' : 'jobs.ascending')}
        onClick={() => onChange({ order: REVERSE[filter.order] })}
      />
    </div>
  );
}

function NoJobs({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const { t } = useLanguage();
  const { data: gpus } = useGpus();
  if (filtered) {
    return (
      <Empty
        icon={Search}
        title={t('jobs.noneFound')}
        actions={<Button onClick={onClear}>{t('jobs.clearFilter')}</Button>}
      />
    );
  }
  return (
    <Empty
      icon={ListTree}
      title={t('jobs.noneTitle')}
      actions={
        <Link href="/command" className="button primary">
          {t('jobs.noneAction')}
        </Link>
      }
    >
      <p>{t('jobs.noneText')}</p>
      <Command>{`berth add --gpus ${gpus?.length === 0 ? 0 : 1} -- python train.py`}</Command>
    </Empty>
  );
}

/** How many jobs the list has; null: that is not known before all of them are loaded. */
function totalOf(
  { states }: Filter,
  counts: Record<JobState, number> | undefined,
  loaded: number,
  more: boolean,
): number | null {
  if (!more) return loaded;
  if (!counts) return null;
  const shown: readonly JobState[] = states.length ? states : JOB_STATES;
  return Math.max(
    loaded,
    shown.reduce((sum, state) => sum + counts[state], 0),
  );
}

function Foot({
  loaded,
  total,
  more,
  searching,
  failed,
  onAgain,
}: {
  loaded: number;
  total: number | null;
  more: boolean;
  searching: boolean;
  /** Why there is not more of it. */
  failed: Error | null;
  onAgain: () => void;
}) {
  const { t, language } = useLanguage();
  const numbers = { loaded: count(loaded, language), total: count(total ?? loaded, language) };
  if (failed) {
    return (
      <div className="table-foot row wrap">
        <span className="error-text" role="alert">
          {t('jobs.moreFailed', { why: failed.message })}
        </span>
        <Button look="quiet" onClick={onAgain}>
          {t('common.again')}
        </Button>
      </div>
    );
  }
  return (
    <p className="table-foot muted" role="status">
      {searching && t('jobs.searching', numbers)}
      {!searching && !more && t('jobs.shown', numbers)}
      {!searching && more && t(total === null ? 'jobs.loadedSome' : 'jobs.loadedOf', numbers)}
    </p>
  );
}

function JobsView({ filter, change }: { filter: Filter; change: (f: Partial<Filter>) => void }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const mayChange = useMayChange();
  const { link } = useLive();
  const [selected, setSelected] = useState<RowSelectionState>({});
  const query = useMemo(() => apiFilter(filter), [filter]);
  const counts = useCounts(filter);
  const list = useJobList(query);
  const { jobs, hasNextPage, isFetching, isFetchingNextPage, fetchNextPage, isPlaceholderData } =
    list;
  const moreFailed = list.isFetchNextPageError ? list.error : null;
  /** Jobs are collected for a selection; another one, or none, ends that. */
  const collecting = useRef(0);
  const deselect = useCallback(() => {
    collecting.current += 1;
    setSelected({});
  }, []);
  // What is no longer in sight is not acted on.
  const narrowed = formatFilter({ ...filter, sort: 'id', order: firstOrder('id') });
  useEffect(() => deselect, [narrowed, deselect]);
  // A page that is asked for ends whatever else the list is being asked for.
  const idle = !isFetching && !moreFailed;
  const nearEnd = useCallback(() => {
    if (hasNextPage && idle) void fetchNextPage();
  }, [hasNextPage, idle, fetchNextPage]);
  // The daemon looks through a part of its jobs at a time: few are found, and nobody can scroll to the others.
  const few = filter.q !== '' && jobs.length < SCREENFUL;
  useEffect(() => {
    if (few) nearEnd();
  }, [few, nearEnd]);
  const before = useRef(jobs);
  const next = list.data?.pages.at(-1)?.next ?? null;
  const { sort, order } = filter;
  useEffect(() => {
    const were = before.current;
    before.current = jobs;
    if (were === jobs) return;
    setSelected((now) => {
      if (!Object.keys(now).length) return now;
      const gone = new Set(left(were, { jobs, next }, order, sort).map(String));
      const rest = Object.entries(now).filter(([id]) => !gone.has(id));
      return gone.size ? Object.fromEntries(rest) : now;
    });
  }, [jobs, next, order, sort]);
  /** Of those that are not loaded only the daemon knows. */
  const still = useCallback(
    async (chosen: readonly number[]) => (await api.parts(chosen, [], query)).map((job) => job.id),
    [query],
  );
  const ids = useMemo(
    () =>
      Object.entries(selected)
        .filter(([, on]) => on)
        .map(([id]) => Number(id)),
    [selected],
  );
  const chosen = useMemo(() => {
    const set = new Set(ids);
    return jobs.filter((job) => set.has(job.id));
  }, [ids, jobs]);
  const sorting = useMemo(
    () => ({
      sort,
      order,
      onSort: (by: JobSort) =>
        change({ sort: by, order: by === sort ? REVERSE[order] : firstOrder(by) }),
    }),
    [change, order, sort],
  );
  const total = totalOf(filter, counts, jobs.length, hasNextPage);
  const filtered = Boolean(filter.states.length || filter.q || filter.queue || filter.batch);

  const selectAll = async () => {
    const all: RowSelectionState = {};
    let after: JobPlace | undefined;
    const turn = (collecting.current += 1);
    try {
      do {
        const page = await api.ids(query, after);
        if (turn !== collecting.current) return;
        for (const id of page.ids) all[String(id)] = true;
        after = page.next ?? undefined;
      } while (after !== undefined);
      setSelected(all);
    } catch (error) {
      if (turn === collecting.current) say((error as Error).message, { tone: 'bad' });
    }
  };

  return (
    <>
      <div className="toolbar">
        <SearchBox value={filter.q} onChange={useCallback((q) => change({ q }), [change])} />
        <StateFilter filter={filter} counts={counts} onChange={change} />
        {(filter.queue || filter.batch) && (
          <Button look="quiet" onClick={() => change({ queue: '', batch: '' })}>
            {filter.queue && `${t('col.queue')} ${filter.queue}`}
            {filter.batch && `${t('col.batch')} ${filter.batch}`} ×
          </Button>
        )}
        <SortChoice filter={filter} onChange={change} />
      </div>
      {(list.isPending || (isPlaceholderData && !jobs.length)) && link !== 'gone' && (
        <Skeleton rows={12} />
      )}
      {list.error && !jobs.length && <Missing error={list.error} />}
      {!list.isPending && !list.error && !isPlaceholderData && jobs.length === 0 && (
        <NoJobs
          filtered={filtered}
          onClear={() => change({ states: [], q: '', queue: '', batch: '' })}
        />
      )}
      {jobs.length > 0 && (
        <>
          <JobTable
            // Another list begins at its top.
            key={formatFilter(filter)}
            list={formatFilter(filter)}
            jobs={jobs}
            total={total}
            selected={selected}
            onSelect={setSelected}
            onNearEnd={nearEnd}
            onSeen={list.onSeen}
            mayChange={mayChange}
            sorting={sorting}
          />
          <Foot
            loaded={isPlaceholderData ? 0 : jobs.length}
            total={total}
            more={hasNextPage}
            searching={isPlaceholderData || (filter.q !== '' && isFetchingNextPage)}
            failed={moreFailed}
            onAgain={() => void fetchNextPage()}
          />
        </>
      )}
      {ids.length > 0 && mayChange && (
        <BulkBar
          ids={ids}
          still={still}
          jobs={chosen}
          more={hasNextPage || ids.length < jobs.length}
          onAll={() => void selectAll()}
          onClear={deselect}
        />
      )}
    </>
  );
}

export default function StatePage() {
  const { t } = useLanguage();
  const [filter, change] = useFilter();
  return (
    <div className={filter.view === 'jobs' ? 'fill' : ''}>
      <header className="page-head">
        <h1>{t('nav.state')}</h1>
        <Segmented<View>
          label={t('view.label')}
          value={filter.view}
          onChange={(view) => change({ view })}
          options={[
            ['jobs', t('view.jobs')],
            ['groups', t('view.groups')],
            ['timeline', t('view.timeline')],
          ]}
        />
      </header>
      {filter.view === 'jobs' && <JobsView filter={filter} change={change} />}
      {filter.view !== 'jobs' && (
        <Suspense fallback={<Skeleton rows={8} />}>
          {filter.view === 'groups' ? <Groups /> : <Timeline />}
        </Suspense>
      )}
    </div>
  );
}
