// The list's filter stands in the address, so that it can be sent to somebody and found again.

import { useCallback, useMemo } from 'react';
import { useSearch } from 'wouter';
import { useLocation } from 'wouter';
import type { JobFilter } from '../../api/client';
import { JOB_SORTS, type JobSort, type Order } from '../../api/joblist';
import { JOB_STATES, type JobState } from '../../api/types';

export type View = 'jobs' | 'groups' | 'timeline';

export interface Filter {
  states: JobState[];
  queue: string;
  batch: string;
  q: string;
  sort: JobSort;
  order: Order;
  view: View;
}

/** What one wants to see first: the newest, the most urgent, what waits. */
export const firstOrder = (sort: JobSort): Order =>
  sort === 'priority' || sort === 'state' ? 'asc' : 'desc';
export const REVERSE: Record<Order, Order> = { asc: 'desc', desc: 'asc' };

export function parseFilter(search: string): Filter {
  const parameters = new URLSearchParams(search);
  const known = new Set<string>(JOB_STATES);
  const view = parameters.get('view');
  const orders: readonly Order[] = ['asc', 'desc'];
  const sort = JOB_SORTS.find((one) => one === parameters.get('sort')) ?? 'id';
  return {
    states: (parameters.get('state') ?? '')
      .split(',')
      .filter((state): state is JobState => known.has(state)),
    queue: parameters.get('queue') ?? '',
    batch: /^\d+$/.test(parameters.get('batch') ?? '') ? (parameters.get('batch') ?? '') : '',
    q: parameters.get('q') ?? '',
    sort,
    order: orders.find((one) => one === parameters.get('order')) ?? firstOrder(sort),
    view: view === 'groups' || view === 'timeline' ? view : 'jobs',
  };
}

export function formatFilter(filter: Filter): string {
  const parameters = new URLSearchParams();
  if (filter.states.length) parameters.set('state', filter.states.join(','));
  if (filter.queue) parameters.set('queue', filter.queue);
  if (filter.batch) parameters.set('batch', filter.batch);
  if (filter.q) parameters.set('q', filter.q);
  if (filter.sort !== 'id') parameters.set('sort', filter.sort);
  if (filter.order !== firstOrder(filter.sort)) parameters.set('order', filter.order);
  if (filter.view !== 'jobs') parameters.set('view', filter.view);
  return parameters.toString();
}

export function apiFilter(filter: Filter): JobFilter {
  return {
    ...(filter.states.length ? { state: filter.states.join(',') } : {}),
    ...(filter.queue ? { queue: filter.queue } : {}),
    ...(filter.batch ? { batch: Number(filter.batch) } : {}),
    ...(filter.q ? { q: filter.q } : {}),
    ...(filter.sort === 'id' ? {} : { sort: filter.sort }),
    order: filter.order,
  };
}

export function useFilter(): [Filter, (change: Partial<Filter>) => void] {
  const search = useSearch();
  const [location, go] = useLocation();
  const filter = useMemo(() => parseFilter(search), [search]);
  const change = useCallback(
    (part: Partial<Filter>) => {
      const text = formatFilter({ ...filter, ...part });
      go(text ? `${location}?${text}` : location, { replace: true });
    },
    [filter, go, location],
  );
  return [filter, change];
}
