// The one way from the console to the daemon, typed by docs/openapi.yaml.

import createClient, { type Middleware } from 'openapi-fetch';
import { spoken } from '../i18n';
import type { paths } from './schema';
import type { JobSort, Order } from './joblist';
import type { Dialect, Job, JobPage, RuleChange } from './types';

/** An answer that is no success. `status` 0: there was no answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly body: unknown = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
  get gone(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 504;
  }
  get denied(): boolean {
    return this.status === 401;
  }
}

function errorOf(response: Response, body: unknown): ApiError {
  const error = (body as { error?: { code?: string; message?: string } } | null)?.error;
  const plain = `${response.status} ${response.statusText}`;
  return new ApiError(response.status, error?.code ?? 'unknown', error?.message ?? plain, body);
}

/** What nobody answered the daemon has no words for. */
const unanswered = () => new ApiError(0, 'gone', spoken('gone.title'));

/** From GET /api/session; sent with whatever changes something. */
let csrf: string | undefined;

const guard: Middleware = {
  onRequest({ request }) {
    if (csrf && request.method !== 'GET') request.headers.set('X-Berth-CSRF', csrf);
    return request;
  },
  onError({ error }) {
    if (error instanceof DOMException && error.name === 'AbortError') return error;
    return unanswered();
  },
};

const http = createClient<paths>({
  baseUrl: globalThis.location.origin,
  credentials: 'same-origin',
  fetch: (request) => globalThis.fetch(request),
});
http.use(guard);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

async function of<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw errorOf(response, error);
  return data as T;
}

type Scalar = string | number | boolean;

export function target(
  path: string,
  query: Record<string, Scalar | null | undefined> = {},
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

async function askLog(
  id: number,
  attempt: number,
  query: { lines?: number },
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  try {
    return await fetch(target(`/api/jobs/${id}/log`, { attempt: attempt || undefined, ...query }), {
      credentials: 'same-origin',
      headers,
      ...(signal ? { signal } : {}),
    });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw unanswered();
  }
}

/** No part of an empty log can be had, and browsers tell of such an answer as an error. */
export async function logIsEmpty(
  id: number,
  attempt: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const response = await askLog(id, attempt, { lines: 1 }, {}, signal);
  if (!response.ok) throw errorOf(response, await response.json().catch(() => null));
  return (await response.arrayBuffer()).byteLength === 0;
}

/** A part of a log, as bytes. Null: there is nothing at or behind `from`. */
export async function logPart(
  id: number,
  attempt: number,
  from: number,
  signal?: AbortSignal,
): Promise<{ bytes: Uint8Array; begin: number; size: number } | null> {
  const range = { Range: from < 0 ? `bytes=${from}` : `bytes=${from}-` };
  const response = await askLog(id, attempt, {}, range, signal);
  if (response.status === 416) return null;
  if (!response.ok) {
    throw errorOf(response, await response.json().catch(() => null));
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const part = /bytes (\d+)-\d+\/(\d+)/.exec(response.headers.get('Content-Range') ?? '');
  return {
    bytes,
    begin: part ? Number(part[1]) : 0,
    size: part ? Number(part[2]) : bytes.length,
  };
}

export interface JobFilter {
  state?: string;
  queue?: string;
  batch?: number;
  q?: string;
  order?: Order;
  sort?: JobSort;
}

/** 3,5-9: how the API writes many ids. */
export function ranges(ids: readonly number[]): string {
  const sorted = [...new Set(ids)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === (sorted[j] ?? 0) + 1) j += 1;
    parts.push(i === j ? String(sorted[i]) : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.join(',');
}

/** Addresses have a length that browsers and daemons bear. */
const LONGEST_IDS = 4_000;
const MOST_IDS = 10_000;

/** The same in parts, each short enough for an address. */
export function rangeParts(ids: readonly number[]): string[] {
  const parts: string[] = [];
  let part = '';
  let held = 0;
  for (const range of ranges(ids).split(',').filter(Boolean)) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let from = first; from <= last; from += MOST_IDS) {
      const to = Math.min(last, from + MOST_IDS - 1);
      const piece = from === to ? String(from) : `${from}-${to}`;
      if (part && (held + to - from + 1 > MOST_IDS || part.length > LONGEST_IDS)) {
        parts.push(part);
        part = '';
        held = 0;
      }
      part = part ? `${part},${piece}` : piece;
      held += to - from + 1;
    }
  }
  return part ? [...parts, part] : parts;
}

type Ids = readonly number[];
/** Where a page of jobs goes on. */
export type JobPlace = number | string;
const place = (after: JobPlace | undefined) =>
  after === undefined ? {} : { after: String(after) };

/** Both as one parameter, as the API has it. */
function ordered({ sort = 'id', order = 'asc', ...rest }: JobFilter) {
  return { ...rest, sort: `${order === 'desc' ? '-' : ''}${sort}` as const };
}

interface JobsQuery extends JobFilter {
  after?: JobPlace;
  limit?: number;
  ids?: string;
}
export interface Move {
  to: 'first' | 'last' | 'queue' | 'priority';
  queue?: string;
  priority?: number;
}
type Body<P extends keyof paths> = paths[P] extends {
  post: { requestBody?: { content: { 'application/json': infer B } } };
}
  ? B
  : never;

const control = <P extends '/api/jobs/pause' | '/api/jobs/resume' | '/api/jobs/start'>(
  path: P,
  body: Body<P>,
) => of(http.POST(path as '/api/jobs/pause', { body: body as Body<'/api/jobs/pause'> }));

export const api = {
  status: (signal?: AbortSignal) => of(http.GET('/api/status', { signal: signal ?? null })),
  health: () => of(http.GET('/health')),
  gpus: (signal?: AbortSignal) =>
    of(http.GET('/api/gpus', { signal: signal ?? null })).then((answer) => answer.gpus),
  gpuHistory: (gpu: string, from: number, to: number, points: number) =>
    of(http.GET('/api/gpus/history', { params: { query: { gpu, from, to, points } } })),
  jobs: ({ after, ...query }: JobsQuery, signal?: AbortSignal): Promise<JobPage> =>
    of(
      http.GET('/api/jobs', {
        params: { query: { ...ordered(query), ...place(after), state: query.state as never } },
        signal: signal ?? null,
      }),
    ) as Promise<JobPage>,
  /** Ids alone, for what is done to all jobs of a list. */
  ids: async (
    filter: JobFilter,
    after?: JobPlace,
  ): Promise<{ ids: number[]; next: JobPlace | null }> => {
    const page = await of(
      http.GET('/api/jobs', {
        params: {
          query: {
            ...ordered(filter),
            ...place(after),
            state: filter.state as never,
            limit: 10_000,
            fields: 'id',
          },
        },
      }),
    );
    return { ids: (page.jobs as Pick<Job, 'id'>[]).map((job) => job.id), next: page.next ?? null };
  },
  /** What is asked for of jobs that need not be loaded, of those that fit the filter. */
  parts: async <F extends keyof Job>(
    ids: Ids,
    fields: readonly F[],
    { state, queue, batch, q }: JobFilter = {},
  ): Promise<Pick<Job, F | 'id'>[]> => {
    const found: Pick<Job, F | 'id'>[] = [];
    for (const part of rangeParts(ids)) {
      let after: JobPlace | undefined;
      do {
        const page = await of(
          http.GET('/api/jobs', {
            params: {
              query: {
                ids: part,
                limit: MOST_IDS,
                fields: ['id', ...fields].join(','),
                ...place(after),
                ...(state ? { state: state as never } : {}),
                ...(queue ? { queue } : {}),
                ...(batch ? { batch } : {}),
                ...(q ? { q } : {}),
              },
            },
          }),
        );
        for (const job of page.jobs) found.push(job as Pick<Job, F | 'id'>);
        after = page.next ?? undefined;
      } while (after !== undefined);
    }
    return found;
  },
  job: (id: number, signal?: AbortSignal) =>
    of(http.GET('/api/jobs/{id}', { params: { path: { id } }, signal: signal ?? null })),
  why: (id: number) => of(http.GET('/api/jobs/{id}/why', { params: { path: { id } } })),
  backlog: () => of(http.GET('/api/why')),
  usage: (id: number, attempt: number) =>
    of(http.GET('/api/jobs/{id}/usage', { params: { path: { id }, query: { attempt } } })),
  /** The newest; from there on more at a time. */
  batches: (after?: number) =>
    of(
      http.GET('/api/batches', {
        params: {
          query: {
            order: 'desc',
            ...(after === undefined ? { limit: 200 } : { after, limit: 1000 }),
          },
        },
      }),
    ),
  batch: (id: number) => of(http.GET('/api/batches/{id}', { params: { path: { id } } })),
  queues: () => of(http.GET('/api/queues')),
  events: (
    query: { after?: number; job?: number; order?: 'asc' | 'desc'; limit?: number },
    signal?: AbortSignal,
  ) => of(http.GET('/api/events', { params: { query }, signal: signal ?? null })),
  timeline: (from: number, to: number) =>
    of(http.GET('/api/timeline', { params: { query: { from, to } } })),
  kill: (ids: Ids) => of(http.POST('/api/jobs/kill', { body: { ids: [...ids] } })),
  pause: (ids: Ids) => control('/api/jobs/pause', { ids: ranges(ids) }),
  resume: (ids: Ids) => control('/api/jobs/resume', { ids: ranges(ids) }),
  start: (ids: Ids) => control('/api/jobs/start', { ids: ranges(ids) }),
  retry: (ids: Ids) =>
    of(http.POST('/api/jobs/retry', { body: { ids: ranges(ids), succeeded: true } })),
  move: (ids: Ids, move: Move) =>
    of(http.POST('/api/jobs/move', { body: { ids: ranges(ids), ...move } })),
  /** The daemon does a part at a time. */
  forget: async (ids: Ids): Promise<number> => {
    let removed = 0;
    let after: number | null | undefined;
    do {
      const answer = await of(
        http.POST('/api/jobs/remove', { body: { ids: ranges(ids), ...(after ? { after } : {}) } }),
      );
      removed += answer.removed.length;
      after = answer.next;
    } while (after);
    return removed;
  },
  pauseQueue: (queue: string) => control('/api/jobs/pause', { queue }),
  resumeQueue: (queue: string) => control('/api/jobs/resume', { queue }),
  pauseGpu: (gpu: string, why: string) => control('/api/jobs/pause', { gpu, why }),
  resumeGpu: (gpu: string) => control('/api/jobs/resume', { gpu }),
  pauseInstance: () => control('/api/jobs/pause', { instance: true }),
  resumeInstance: () => control('/api/jobs/resume', { instance: true }),
  submit: (body: Body<'/api/jobs'>) => of(http.POST('/api/jobs', { body })),
  check: (
    body: { text: string; name: string; dialect: Dialect | null; cwd: string },
    signal?: AbortSignal,
  ) => of(http.POST('/api/check', { body, signal: signal ?? null })),
  submitFile: (body: Body<'/api/jobfiles'>) => of(http.POST('/api/jobfiles', { body })),
  rules: (query: { queue?: string; batch?: number }) =>
    of(http.GET('/api/rules', { params: { query } })),
  setRules: (body: RuleChange) => of(http.POST('/api/rules', { body })),
  previewRules: (body: RuleChange) => of(http.POST('/api/rules/preview', { body })),
  ruleHistory: () => of(http.GET('/api/rules/history')),
  results: (query: NonNullable<paths['/api/results']['get']['parameters']['query']>) =>
    of(http.GET('/api/results', { params: { query } })),
};

export const access = {
  async session() {
    const session = await of(http.GET('/api/session'));
    csrf = session.csrf ?? undefined;
    return session;
  },
  tokens: () => of(http.GET('/api/tokens')),
  createToken: (body: Body<'/api/tokens'>) => of(http.POST('/api/tokens', { body })),
  revokeToken: (id: number) => of(http.DELETE('/api/tokens/{id}', { params: { path: { id } } })),
  listen: () => of(http.GET('/api/listen')),
  stopUi: () => of(http.POST('/api/ui/stop')),
  logout: () => of(http.POST('/api/logout')),
};

export type Mode = 'single' | 'multi';
export interface Place {
  mode: Mode;
  config_index: number;
  queue_id: number;
  process_index: number;
}

/** Lines of a bound log that are shown, its last ones. */
export const TAIL = 500;

/** Command files, by mode and number. */
export const configs = {
  all: (mode: Mode) => of(http.GET('/api/commands/{mode}/all', { params: { path: { mode } } })),
  read: (mode: Mode, index: number) =>
    of(
      http.GET('/api/commands/{mode}', {
        params: { path: { mode }, query: { config_index: index, text: true } },
      }),
    ),
  write: (mode: Mode, index: number, text: string, version: string) =>
    of(
      http.PUT('/api/commands/{mode}', {
        params: { path: { mode }, query: { config_index: index } },
        body: { text, version },
      }),
    ),
  create: (mode: Mode) => of(http.POST('/api/commands/{mode}/new', { params: { path: { mode } } })),
  remove: (mode: Mode, index: number) =>
    of(http.DELETE('/api/commands/{mode}/{index}', { params: { path: { mode, index } } })),
  start: (mode: Mode, index: number) =>
    of(
      http.POST('/api/scheduler/{mode}/start', {
        params: { path: { mode }, query: { config_index: index } },
      }),
    ),
  stop: (mode: Mode, index: number, kill: boolean) =>
    of(
      http.POST('/api/scheduler/{mode}/stop', {
        params: {
          path: { mode },
          query: { config_index: index, ...(kill ? { kill: true } : {}) },
        },
      }),
    ),
  state: (mode: Mode, index: number) =>
    of(
      http.GET('/api/scheduler/{mode}/state', {
        params: { path: { mode }, query: { config_index: index } },
      }),
    ),
  bindings: () => of(http.GET('/api/log/bindings')),
  bind: (place: Place, path: string) =>
    of(http.POST('/api/log/bind', { body: { ...place, log_path: path } })),
  unbind: (place: Place) => of(http.DELETE('/api/log/bind', { params: { query: place } })),
  log: (place: Place) =>
    of(http.GET('/api/log/content', { params: { query: { ...place, tail_lines: TAIL } } })),
};
