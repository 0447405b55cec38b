// Queues and batches, and how far they have come.

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { CirclePause, CirclePlay, Layers } from 'lucide-react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import { useGuard } from '../../api/guard';
import { JOB_STATES, type Batch, type Queue, type Reason } from '../../api/types';
import { useLanguage } from '../../i18n';
import { clock, count } from '../../lib/format';
import { Cards, useReason } from './reason';
import { Button, Empty, Panel, Skeleton } from '../../ui/basic';
import { useOverlays } from '../../ui/overlay';

/** How many there are, and how many of them have ended. */
export function reckon(counts: Batch['counts']): { total: number; done: number } {
  const total = JOB_STATES.reduce((sum, state) => sum + counts[state], 0);
  return { total, done: total - counts.queued - counts.running - counts.paused };
}

export function Progress({ counts }: { counts: Batch['counts'] }) {
  const { t, language } = useLanguage();
  const { total } = reckon(counts);
  const words =
    JOB_STATES.filter((state) => counts[state] > 0)
      .map((state) => `${t(`state.${state}`)} ${count(counts[state], language)}`)
      .join(', ') || t('queue.noJobs');
  return (
    <div className="progress" role="img" aria-label={words} title={words}>
      {(['succeeded', 'failed', 'killed', 'cancelled', 'running', 'paused'] as const).map(
        (state) =>
          counts[state] > 0 && (
            <span
              key={state}
              className={`bar-${state}`}
              style={{ width: `${(100 * counts[state]) / Math.max(1, total)}%` }}
            />
          ),
      )}
    </div>
  );
}

function QueueRow({ queue }: { queue: Queue }) {
  const { t, language } = useLanguage();
  const { say } = useOverlays();
  const guard = useGuard();
  const { total, done } = reckon(queue.counts);
  const { failed, running } = queue.counts;
  const waiting = queue.counts.queued + queue.counts.paused;
  const toggle = () => {
    const act = queue.paused ? api.resumeQueue(queue.name) : api.pauseQueue(queue.name);
    const back = queue.paused ? api.pauseQueue : api.resumeQueue;
    void act.then(
      () =>
        say(t(queue.paused ? 'queue.resumed' : 'queue.paused', { name: queue.name }), {
          undo: () => back(queue.name),
        }),
      (error: Error) => say(error.message, { tone: 'bad' }),
    );
  };
  return (
    <tr>
      <th scope="row">
        <Link href={`/state?queue=${encodeURIComponent(queue.name)}`}>{queue.name}</Link>
        {queue.paused && <span className="badge badge-paused">{t('state.paused')}</span>}
      </th>
      <td className="wide-cell">
        <Progress counts={queue.counts} />
        <small className="muted only-narrow">
          {t('queue.words', {
            running: count(running, language),
            waiting: count(waiting, language),
            failed: count(failed, language),
          })}
        </small>
      </td>
      <td className="num nowrap">
        {count(done, language)} / {count(total, language)}
      </td>
      <td className={`num hide-narrow ${failed ? 'state-failed' : 'muted'}`}>
        {count(failed, language)}
      </td>
      <td className="num hide-narrow">{count(running, language)}</td>
      <td className="num hide-narrow">{count(waiting, language)}</td>
      <td className="num hide-narrow">{queue.limit || t('queue.noLimit')}</td>
      <td className="num">
        <Button
          {...guard}
          look="quiet"
          icon={queue.paused ? CirclePlay : CirclePause}
          onClick={toggle}
          aria-label={`${t(queue.paused ? 'action.resume' : 'action.pause')} ${queue.name}`}
        >
          <span className="hide-narrow">{t(queue.paused ? 'action.resume' : 'action.pause')}</span>
        </Button>
      </td>
    </tr>
  );
}

function BatchRow({ batch }: { batch: Batch }) {
  const { t, language } = useLanguage();
  const { total, done } = reckon(batch.counts);
  return (
    <tr>
      <td className="mono muted">{batch.id}</td>
      <th scope="row">
        <Link href={`/state?batch=${batch.id}`}>
          {batch.name || t('batch.unnamed', { id: batch.id })}
        </Link>
      </th>
      <td className="wide-cell">
        <Progress counts={batch.counts} />
      </td>
      <td className="num nowrap">
        {count(done, language)} / {count(total, language)}
      </td>
      <td className="muted nowrap hide-narrow">{clock(batch.submitted_at, language)}</td>
      <td className="num">
        <Link href={`/results?batch=${batch.id}`}>{t('nav.results')}</Link>
      </td>
    </tr>
  );
}

function Holdup({ why }: { why: Reason }) {
  const { t } = useLanguage();
  const what = useReason(why);
  if (!why.gpus.length) return <span>{what}</span>;
  return (
    <details>
      <summary>
        {what} <span className="muted">· {t('why.cards')}</span>
      </summary>
      <Cards reason={why} />
    </details>
  );
}

export default function Groups() {
  const { t, language } = useLanguage();
  const queues = useQuery({ queryKey: ['queues'], queryFn: api.queues });
  const batches = useInfiniteQuery({
    queryKey: ['batches', 'pages'],
    queryFn: ({ pageParam }) => api.batches(pageParam),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const shown = batches.data?.pages.flatMap((page) => page.batches);
  const backlog = useQuery({ queryKey: ['backlog'], queryFn: api.backlog });
  return (
    <div className="stack">
      {backlog.data && backlog.data.holdups.length > 0 && (
        <Panel
          title={t('backlog.title', { count: count(backlog.data.waiting, language) })}
          id="backlog"
        >
          <ul className="holdups">
            {backlog.data.holdups.map((holdup) => (
              <li key={`${holdup.kind}-${holdup.first}`}>
                <strong className="num">{count(holdup.jobs, language)}</strong>
                <Holdup why={holdup.why} />
                <Link href={`/state/${holdup.first}`}>{t('gpu.job', { id: holdup.first })}</Link>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel title={t('queue.title')} id="queues">
        {queues.isPending && <Skeleton rows={3} />}
        {queues.error && <p className="error-text">{queues.error.message}</p>}
        {queues.data?.queues.length === 0 && <p className="muted">{t('queue.none')}</p>}
        {queues.data && queues.data.queues.length > 0 && (
          <div className="scroll-x" tabIndex={0} role="group" aria-labelledby="queues">
            <table className="plain">
              <thead>
                <tr>
                  <th scope="col">{t('col.queue')}</th>
                  <th scope="col">{t('batch.progress')}</th>
                  <th scope="col" className="num">
                    {t('batch.done')}
                  </th>
                  <th scope="col" className="num hide-narrow">
                    {t('queue.failed')}
                  </th>
                  <th scope="col" className="num hide-narrow">
                    {t('queue.running')}
                  </th>
                  <th scope="col" className="num hide-narrow">
                    {t('queue.waiting')}
                  </th>
                  <th scope="col" className="num hide-narrow">
                    {t('queue.limit')}
                  </th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {queues.data.queues.map((queue) => (
                  <QueueRow key={queue.name} queue={queue} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Panel>
      <Panel title={t('batch.title')} id="batches">
        {batches.isPending && <Skeleton rows={4} />}
        {batches.error && <p className="error-text">{batches.error.message}</p>}
        {shown?.length === 0 && (
          <Empty icon={Layers} title={t('batch.none')}>
            <p>{t('batch.noneText')}</p>
          </Empty>
        )}
        {shown && shown.length > 0 && (
          <div className="scroll-x" tabIndex={0} role="group" aria-labelledby="batches">
            <table className="plain">
              <thead>
                <tr>
                  <th scope="col">{t('col.id')}</th>
                  <th scope="col">{t('col.name')}</th>
                  <th scope="col">{t('batch.progress')}</th>
                  <th scope="col" className="num">
                    {t('batch.done')}
                  </th>
                  <th scope="col" className="hide-narrow">
                    {t('col.submitted')}
                  </th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {shown.map((batch) => (
                  <BatchRow key={batch.id} batch={batch} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {shown && batches.hasNextPage && (
          <div className="row wrap">
            <span className="muted">
              {t('batch.newest', { count: count(shown.length, language) })}
            </span>
            <Button
              disabled={batches.isFetchingNextPage}
              onClick={() => void batches.fetchNextPage()}
            >
              {t('batch.more')}
            </Button>
          </div>
        )}
      </Panel>
    </div>
  );
}
