// The list of jobs: only the rows that can be seen exist.

import {
  createColumnHelper,
  flexRender,
  getCoreRowModel,
  useReactTable,
  type RowSelectionState,
} from '@tanstack/react-table';
import { ArrowDown, ArrowUp, ArrowUpDown } from 'lucide-react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState, type MouseEvent, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { JobSort, Order } from '../../api/joblist';
import type { Job } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes, clock, duration, shortly } from '../../lib/format';
import { useKeys } from '../../lib/keys';
import { PHONE, useNarrow } from '../../lib/narrow';
import { useNow } from '../../lib/now';
import { leaveSpot, spotOf } from '../../lib/place';
import { StateBadge } from '../../ui/basic';
import { aboutText, tries } from './about';

const ROW = 36;
const NARROW_ROW = 62;
const AHEAD = 40;
const USUAL_PRIORITY = 5;
/** A button of the mouse. */
const MIDDLE = 1;

const column = createColumnHelper<Job>();

export function runtime(job: Pick<Job, 'state' | 'started_at' | 'ended_at'>, now: number) {
  if (!job.started_at) return null;
  if (job.ended_at) return job.ended_at - job.started_at;
  return job.state === 'queued' ? null : now - job.started_at;
}

function Runtime({ job }: { job: Job }) {
  const now = useNow(job.state === 'running' || job.state === 'paused');
  return <>{duration(runtime(job, now))}</>;
}

/** Columns that the list can be sorted by. */
const SORT_OF: Record<string, JobSort> = {
  id: 'id',
  state: 'state',
  priority: 'priority',
  submitted_at: 'submitted',
  started_at: 'started',
  ended_at: 'ended',
};

export interface Sorting {
  sort: JobSort;
  order: Order;
  onSort: (sort: JobSort) => void;
}

/** The name of a column; a button where the list can be sorted by it. */
function Heading({
  column: { id },
  sorting: { sort, order, onSort },
  children,
}: {
  column: { id: string };
  sorting: Sorting;
  children: ReactNode;
}) {
  const own = SORT_OF[id];
  const on = own !== undefined && own === sort;
  const Icon = !on ? ArrowUpDown : order === 'asc' ? ArrowUp : ArrowDown;
  const direction = order === 'asc' ? 'ascending' : 'descending';
  return (
    <div
      role="columnheader"
      className={`cell cell-${id} ${on ? 'sorted' : ''}`}
      aria-sort={own === undefined ? undefined : on ? direction : 'none'}
    >
      {own === undefined ? (
        children
      ) : (
        <button type="button" className="sort" onClick={() => onSort(own)}>
          {children}
          <Icon size={12} aria-hidden />
        </button>
      )}
    </div>
  );
}

/** Of a name that is cut so many letters at its end stay: what tells siblings apart stands there, mostly. */
const TAIL = 14;
const LONG_NAME = 2 * TAIL;

/** Its row can be focused and leads to the job, too. */
function JobLink({ job, title }: { job: Job; title?: string }) {
  const { t } = useLanguage();
  const name = job.name || t('gpu.job', { id: job.id });
  const letters = name.length > LONG_NAME ? [...name] : [];
  return (
    <Link
      href={`/state/${job.id}`}
      className="job-name"
      title={title}
      aria-label={letters.length ? name : undefined}
      tabIndex={-1}
    >
      <span className="truncate">{letters.length ? letters.slice(0, -TAIL).join('') : name}</span>
      {letters.length > 0 && <span className="tail">{letters.slice(-TAIL).join('')}</span>}
    </Link>
  );
}

/** A row does as its link does: with Ctrl, Cmd or the middle button in a page of its own. */
function asLink(event: MouseEvent<HTMLElement>, go: () => void): void {
  const { button, ctrlKey, metaKey, currentTarget, target } = event;
  if (button > MIDDLE || (target instanceof Element && target.closest('a'))) return;
  if (button === MIDDLE || ctrlKey || metaKey) {
    window.open(currentTarget.querySelector('a')?.href, '_blank', 'noopener');
  } else {
    go();
  }
}

function Moment({ at }: { at: number | null }) {
  const { language } = useLanguage();
  if (!at) return <span className="muted">–</span>;
  return (
    <span className="muted nowrap" title={clock(at, language)}>
      {shortly(at, language)}
    </span>
  );
}

function useColumns() {
  const { t, language } = useLanguage();
  return useMemo(
    () => [
      column.display({
        id: 'select',
        size: 34,
        header: ({ table }) => (
          <input
            type="checkbox"
            aria-label={t('jobs.selectAll')}
            checked={table.getIsAllRowsSelected() && table.getRowModel().rows.length > 0}
            onChange={table.getToggleAllRowsSelectedHandler()}
          />
        ),
        cell: ({ row }) => (
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={t('jobs.select', { id: row.original.id })}
            checked={row.getIsSelected()}
            onChange={row.getToggleSelectedHandler()}
            onClick={(event) => event.stopPropagation()}
          />
        ),
      }),
      column.accessor('id', {
        size: 70,
        header: () => t('col.id'),
        cell: ({ getValue }) => <span className="mono muted">{getValue()}</span>,
      }),
      column.accessor('state', {
        size: 110,
        header: () => t('col.state'),
        cell: ({ getValue }) => <StateBadge state={getValue()} />,
      }),
      column.accessor('name', {
        size: 220,
        header: () => t('col.name'),
        cell: ({ row }) => <JobLink job={row.original} title={row.original.name} />,
      }),
      column.accessor('queue', {
        size: 110,
        header: () => t('col.queue'),
        cell: ({ getValue }) => (
          <span className="truncate" title={getValue()}>
            {getValue()}
          </span>
        ),
      }),
      column.accessor('priority', {
        size: 70,
        header: () => t('col.priority'),
        cell: ({ getValue }) => (
          <span className={getValue() === USUAL_PRIORITY ? 'muted' : ''}>{getValue()}</span>
        ),
      }),
      column.display({
        id: 'gpus',
        size: 110,
        header: () => t('col.gpu'),
        cell: ({ row: { original: job } }) =>
          job.gpu_indices.length && job.state !== 'queued' ? (
            <span className="chips">
              {job.gpu_indices.map((index) => (
                <span key={index} className="chip mono">
                  {index}
                </span>
              ))}
            </span>
          ) : (
            <span className="muted">
              {job.gpus
                ? `${job.gpus} × ${job.gpu_memory === null ? t('gpu.wholeShort') : bytes(job.gpu_memory)}`
                : '–'}
            </span>
          ),
      }),
      column.display({
        id: 'tries',
        size: 64,
        header: () => t('col.attempts'),
        cell: ({ row: { original: job } }) => (
          <span className={job.retries_used ? 'state-paused' : 'muted'}>
            {job.attempts}
            {job.retries ? <small> / {tries(job)}</small> : null}
          </span>
        ),
      }),
      column.display({
        id: 'time',
        size: 90,
        header: () => t('col.time'),
        cell: ({ row }) => <Runtime job={row.original} />,
      }),
      column.accessor('submitted_at', {
        size: 130,
        header: () => t('col.submitted'),
        cell: ({ getValue }) => <Moment at={getValue()} />,
      }),
      column.accessor('started_at', {
        size: 130,
        header: () => t('col.started'),
        cell: ({ getValue }) => <Moment at={getValue()} />,
      }),
      column.accessor('ended_at', {
        size: 130,
        header: () => t('col.ended'),
        cell: ({ getValue }) => <Moment at={getValue()} />,
      }),
      column.display({
        id: 'about',
        size: 320,
        header: () => t('col.about'),
        cell: ({ row: { original: job } }) => {
          const about = aboutText(job, language, t);
          return about.text ? (
            <span className="about muted" title={about.detail ?? about.text}>
              {about.text}
            </span>
          ) : (
            <span className="truncate mono muted" title={job.command.slice(0, 2000)}>
              {job.command.slice(0, 300)}
            </span>
          );
        },
      }),
    ],
    [t, language],
  );
}

function NarrowRow({ job }: { job: Job }) {
  const { t, language } = useLanguage();
  const about = aboutText(job, language, t).text;
  return (
    <div className="narrow-row">
      <div className="row spread">
        <JobLink job={job} />
        <StateBadge state={job.state} />
      </div>
      <div className="row spread muted">
        <span className="truncate">
          <span className="mono">{job.id}</span> · {job.queue}
          {job.gpu_indices.length > 0 &&
            job.state !== 'queued' &&
            ` · GPU ${job.gpu_indices.join(', ')}`}
          {about ? ` · ${about}` : ''}
        </span>
        <span className="nowrap">
          <Runtime job={job} />
        </span>
      </div>
    </div>
  );
}

export function JobTable({
  list,
  jobs,
  total,
  selected,
  onSelect,
  onNearEnd,
  onSeen,
  mayChange,
  sorting,
}: {
  /** Which one it is: where one was in it is found again. */
  list: string;
  jobs: Job[];
  /** Of the whole list; null: nobody knows. */
  total: number | null;
  selected: RowSelectionState;
  onSelect: (selection: RowSelectionState) => void;
  onNearEnd: () => void;
  onSeen: (ids: readonly number[]) => void;
  mayChange: boolean;
  sorting: Sorting;
}) {
  const { t } = useLanguage();
  const [, go] = useLocation();
  const narrow = useNarrow(PHONE);
  const scroller = useRef<HTMLDivElement>(null);
  const [spot] = useState(() => spotOf(list));
  const [cursor, setCursor] = useState<number | null>(spot.cursor);
  const columns = useColumns();
  const table = useReactTable({
    data: jobs,
    columns,
    state: {
      rowSelection: selected,
      columnVisibility: { select: mayChange },
    },
    getRowId: (job) => String(job.id),
    enableRowSelection: mayChange,
    onRowSelectionChange: (change) =>
      onSelect(typeof change === 'function' ? change(selected) : change),
    getCoreRowModel: getCoreRowModel(),
  });
  const rows = table.getRowModel().rows;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (narrow ? NARROW_ROW : ROW),
    overscan: 12,
    initialOffset: spot.offset,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (lastShown >= rows.length - AHEAD) onNearEnd();
  }, [lastShown, rows.length, onNearEnd]);
  useEffect(() =>
    onSeen(items.flatMap(({ index }) => (jobs[index] === undefined ? [] : [jobs[index].id]))),
  );
  useEffect(() => virtual.measure(), [narrow, virtual]);
  const latest = useRef({ offset: spot.offset, cursor });
  useEffect(() => {
    latest.current.cursor = cursor;
  });
  useEffect(() => () => leaveSpot(list, latest.current), [list]);

  const at = cursor === null ? -1 : jobs.findIndex((job) => job.id === cursor);
  const move = (by: number) => {
    const next = Math.min(jobs.length - 1, Math.max(0, at + by));
    const job = jobs[next];
    if (!job) return;
    setCursor(job.id);
    virtual.scrollToIndex(next, { align: 'auto' });
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-job="${job.id}"]`)?.focus(),
    );
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => cursor !== null && go(`/state/${cursor}`),
    o: () => cursor !== null && go(`/state/${cursor}`),
    x: () => at >= 0 && mayChange && rows[at]?.toggleSelected(),
    a: () => mayChange && table.toggleAllRowsSelected(),
  });

  return (
    <div
      ref={scroller}
      className="table-scroll"
      role="grid"
      aria-label={t('nav.state')}
      aria-rowcount={total === null ? -1 : Math.max(total, rows.length) + 1}
      aria-multiselectable={mayChange || undefined}
      onScroll={(event) => {
        latest.current.offset = event.currentTarget.scrollTop;
      }}
    >
      {!narrow && (
        <div className="table-head" role="rowgroup">
          {table.getHeaderGroups().map((group) => (
            <div key={group.id} role="row" aria-rowindex={1} className="table-row">
              {group.headers.map((header) => (
                <Heading key={header.id} column={header.column} sorting={sorting}>
                  {flexRender(header.column.columnDef.header, header.getContext())}
                </Heading>
              ))}
            </div>
          ))}
        </div>
      )}
      <div role="rowgroup" className="table-body" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const job = row.original;
          return (
            <div
              key={item.key}
              role="row"
              data-job={job.id}
              aria-rowindex={item.index + 2}
              aria-selected={mayChange ? row.getIsSelected() : undefined}
              tabIndex={job.id === cursor || (cursor === null && item.index === 0) ? 0 : -1}
              className={`table-row ${job.id === cursor ? 'cursor' : ''} ${row.getIsSelected() ? 'selected' : ''}`}
              style={{ transform: `translateY(${item.start}px)`, height: item.size }}
              onClick={(event) => {
                setCursor(job.id);
                asLink(event, () => go(`/state/${job.id}`));
              }}
              onAuxClick={(event) => asLink(event, () => undefined)}
              // Some browsers scroll with it.
              onMouseDown={(event) => event.button === MIDDLE && event.preventDefault()}
              onFocus={() => setCursor(job.id)}
            >
              {narrow ? (
                <div role="gridcell" className="cell">
                  {mayChange && (
                    // As large as a finger, and no way to the job.
                    <label className="narrow-select" onClick={(event) => event.stopPropagation()}>
                      <input
                        type="checkbox"
                        aria-label={t('jobs.select', { id: job.id })}
                        checked={row.getIsSelected()}
                        onChange={row.getToggleSelectedHandler()}
                      />
                    </label>
                  )}
                  <NarrowRow job={job} />
                </div>
              ) : (
                row.getVisibleCells().map((cell) => (
                  <div
                    key={cell.id}
                    role="gridcell"
                    className={`cell cell-${cell.column.id} ${SORT_OF[cell.column.id] === sorting.sort ? 'sorted' : ''}`}
                  >
                    {flexRender(cell.column.columnDef.cell, cell.getContext())}
                  </div>
                ))
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
