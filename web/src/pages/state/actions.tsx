// What can be done to jobs, with a way back where there is one and a question where there is none.

import { useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, type Move } from '../../api/client';
import { JOB_STATES, type ControlAnswer, type Job, type JobState } from '../../api/types';
import { useLanguage, type Translate } from '../../i18n';
import { count } from '../../lib/format';
import { useOverlays } from '../../ui/overlay';

export const LIVING: readonly JobState[] = ['queued', 'running', 'paused'];
export const ended = (job: Pick<Job, 'state'>) => !LIVING.includes(job.state);
const WAITING: readonly JobState[] = ['queued', 'paused'];
const ENDED = JOB_STATES.filter((state) => ended({ state }));

/** What became of the ids, in one line; what was refused is told with its reason. */
function summary(
  t: Translate,
  many: (ids: number) => string,
  done: string,
  { refused = [], unknown = [] }: Partial<ControlAnswer>,
): string {
  const parts = [done];
  for (const { why, ids } of refused) {
    parts.push(t('did.refused', { count: many(ids.length), why }));
  }
  if (unknown.length) parts.push(t('did.unknown', { count: many(unknown.length) }));
  return parts.join(' ');
}

const changedIds = (answer: Partial<ControlAnswer>, ...names: (keyof ControlAnswer)[]) =>
  names.flatMap((name) => (answer[name] as number[] | undefined) ?? []);

type Place = Pick<Job, 'id' | 'queue' | 'priority'>;

/** The ways back of a move: one for each queue or priority that jobs came from. */
export function waysBack(before: readonly Place[], to: Move['to']): [number[], Move][] {
  if (to !== 'queue' && to !== 'priority') return [];
  const ways = new Map<string, [number[], Move]>();
  for (const { id, queue, priority } of before) {
    const back: Move = to === 'queue' ? { to, queue } : { to, priority };
    const way = ways.get(String(back[to]));
    if (way) way[0].push(id);
    else ways.set(String(back[to]), [[id], back]);
  }
  return [...ways.values()];
}

/** Held, or to start later: run again it would start at once, which is not what it waited for. */
export const waitsOnPurpose = ({ why }: Pick<Job, 'why'>) =>
  why?.kind === 'delayed' || why?.kind === 'held';

/** Which of the jobs are still to be acted on: asked for right before that is done. */
export type Still = (ids: readonly number[]) => Promise<readonly number[]>;
const all: Still = (ids) => Promise.resolve(ids);

export function useJobActions(still = all) {
  const { t, language } = useLanguage();
  const { confirm, say } = useOverlays();
  const client = useQueryClient();
  return useMemo(() => {
    const many = (value: number) => count(value, language);
    const fail = (error: unknown) =>
      say(error instanceof Error ? error.message : String(error), { tone: 'bad' });
    const fresh = () => void client.invalidateQueries({ queryKey: ['job'] });
    const leftOut = (left: number) => (left ? ` ${t('did.left', { count: many(left) })}` : '');
    const nothing = (left: number) => say(t('did.nothing') + leftOut(left), { tone: 'bad' });
    const act = async <A extends Partial<ControlAnswer>>(
      chosen: readonly number[],
      ask: (ids: readonly number[]) => Promise<A>,
      tell: (answer: A) => { text: string; changed: number; undo?: () => Promise<unknown> },
    ): Promise<void> => {
      try {
        const ids = await still(chosen);
        const left = chosen.length - ids.length;
        if (!ids.length) {
          nothing(left);
          return;
        }
        const answer = await ask(ids);
        const { text, changed, undo } = tell(answer);
        say(summary(t, many, changed ? text : t('did.nothing'), answer) + leftOut(left), {
          ...(undo ? { undo: () => undo().then(fresh) } : {}),
          tone: answer.refused?.length ? 'bad' : 'ok',
        });
        fresh();
      } catch (error) {
        fail(error);
      }
    };
    const what = (ids: readonly number[]) =>
      ids.length === 1
        ? t('did.job', { id: ids[0] ?? 0 })
        : t('did.jobs', { count: many(ids.length) });
    /** Those that are still to be acted on, and what has to be known of them first. Null: that has been said. */
    const look = async <F extends keyof Job>(
      chosen: readonly number[],
      fields: readonly F[],
      states: readonly JobState[],
    ) => {
      try {
        const ids = await still(chosen);
        if (ids.length) {
          const jobs = await api.parts(ids, fields, { state: states.join(',') });
          return { ids, jobs };
        }
        nothing(chosen.length);
      } catch (error) {
        fail(error);
      }
      return null;
    };

    return {
      async kill(chosen: readonly number[]) {
        const seen = await look(chosen, ['why'], WAITING);
        if (!seen) return;
        const { ids } = seen;
        const lasting = new Set(seen.jobs.filter(waitsOnPurpose).map((job) => job.id));
        const yes = await confirm({
          title: t('kill.title', { what: what(ids) }),
          text: lasting.size
            ? `${t('kill.text')} ${t('kill.lasting', { count: many(lasting.size) })}`
            : t('kill.text'),
          action: t('action.kill'),
          danger: true,
        });
        if (!yes) return;
        await act(ids, api.kill, (answer) => {
          // What had not begun waits again as if nothing had been.
          const back = answer.cancelled.filter((id) => !lasting.has(id));
          return {
            text: t('did.killed', {
              killed: many(answer.killed.length),
              cancelled: many(answer.cancelled.length),
            }),
            changed: answer.killed.length + answer.cancelled.length,
            ...(back.length ? { undo: () => api.retry(back) } : {}),
          };
        });
      },
      async retry(chosen: readonly number[]) {
        const seen = await look(chosen, ['state'], ENDED);
        if (!seen) return;
        const ids = seen.jobs.map((job) => job.id);
        const succeeded = seen.jobs.filter((job) => job.state === 'succeeded').length;
        if (ids.length > 1 || succeeded) {
          const text = t('retry.text', { count: many(ids.length) });
          const yes = await confirm({
            title: t('retry.title', { what: what(ids) }),
            text: succeeded ? `${text} ${t('retry.succeeded', { count: many(succeeded) })}` : text,
            action: t('action.retry'),
          });
          if (!yes) return;
        }
        await act(ids, api.retry, ({ revived = [] }) => ({
          text: t('did.retried', { count: many(revived.length) }),
          changed: revived.length,
        }));
      },
      async pause(ids: readonly number[]) {
        await act(ids, api.pause, (answer) => {
          const stopped = changedIds(answer, 'paused', 'held');
          return {
            text: t('did.paused', { count: many(stopped.length) }),
            changed: stopped.length,
            ...(stopped.length ? { undo: () => api.resume(stopped) } : {}),
          };
        });
      },
      async resume(ids: readonly number[]) {
        await act(ids, api.resume, (answer) => {
          const going = changedIds(answer, 'resumed', 'released');
          return {
            text: t('did.resumed', { count: many(going.length) }),
            changed: going.length,
            ...(going.length ? { undo: () => api.pause(going) } : {}),
          };
        });
      },
      async start(chosen: readonly number[]) {
        const seen = await look(chosen, ['state', 'why'], WAITING);
        if (!seen) return;
        const delayed = seen.jobs.filter((job) => job.why?.kind === 'delayed').length;
        if (delayed) {
          const yes = await confirm({
            title: t('start.title', { what: what(seen.ids) }),
            text: t('start.delayed', { count: many(delayed) }),
            action: t('action.start'),
          });
          if (!yes) return;
        }
        const held = new Set(
          seen.jobs.filter((job) => job.state === 'paused').map((job) => job.id),
        );
        /** To be held ends it. What has started goes on. */
        const back = async (expedited: readonly number[]) => {
          const waiting = await api.parts(expedited, [], { state: 'queued' });
          if (!waiting.length) throw new Error(t('start.over'));
          const ids = waiting.map((job) => job.id);
          await api.pause(ids);
          const free = ids.filter((id) => !held.has(id));
          if (free.length) await api.resume(free);
        };
        await act(seen.ids, api.start, ({ expedited = [] }) => ({
          text: t('did.expedited', { count: many(expedited.length) }),
          changed: expedited.length,
          ...(expedited.length ? { undo: () => back(expedited) } : {}),
        }));
      },
      async move(ids: readonly number[], move: Move) {
        // One can be moved again. The places that many have among others nobody remembers.
        if ((move.to === 'first' || move.to === 'last') && ids.length > 1) {
          const yes = await confirm({
            title: t(`move.${move.to}`, { what: what(ids) }),
            text: t('move.places'),
            action: t(`action.${move.to}`),
          });
          if (!yes) return;
        }
        let ways: [number[], Move][] = [];
        const back = async () => {
          for (const [some, way] of ways) await api.move(some, way);
        };
        await act(
          ids,
          async (now) => {
            // As they are now, so that each goes back to where it came from.
            const before = await api.parts(now, ['queue', 'priority'], { state: LIVING.join(',') });
            ways = waysBack(before, move.to);
            return api.move(now, move);
          },
          (answer) => {
            const changed = changedIds(answer, 'moved', 'changed').length;
            return {
              text: t('did.moved', { count: many(changed) }),
              changed,
              ...(changed && ways.length ? { undo: back } : {}),
            };
          },
        );
      },
      async forget(chosen: readonly number[]): Promise<boolean> {
        const yes = await confirm({
          title: t('forget.title', { what: what(chosen) }),
          text: t('forget.text'),
          action: t('action.forget'),
          danger: true,
        });
        if (!yes) return false;
        try {
          const ids = await still(chosen);
          const removed = ids.length ? await api.forget(ids) : 0;
          say(t('did.forgotten', { count: many(removed) }) + leftOut(chosen.length - ids.length));
          void client.invalidateQueries({ queryKey: ['jobs'] });
          return removed > 0;
        } catch (error) {
          fail(error);
          return false;
        }
      },
      fail,
    };
  }, [client, confirm, language, say, still, t]);
}

export type JobActions = ReturnType<typeof useJobActions>;
