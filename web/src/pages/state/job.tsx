import { useQuery } from '@tanstack/react-query';
import {
  ArrowLeft,
  CirclePause,
  CirclePlay,
  Copy,
  MoreHorizontal,
  Octagon,
  Pencil,
  RotateCw,
  ScrollText,
  SearchX,
} from 'lucide-react';
import { Suspense, useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ApiError, api } from '../../api/client';
import { useLive } from '../../api/data';
import { useGuard } from '../../api/guard';
import type { Attempt, HistoryEvent, JobDetail, JobState, Reason } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes, clock, count, duration, text } from '../../lib/format';
import { newKey } from '../../lib/key';
import { useKeys } from '../../lib/keys';
import { later } from '../../lib/later';
import { ONE_COLUMN, useNarrow } from '../../lib/narrow';
import { useNow } from '../../lib/now';
import { cameFrom } from '../../lib/place';
import { useTitle } from '../../lib/title';
import { eventText, failureNote, isPlain, outcomeText, outlookText, told } from '../../lib/words';
import {
  Button,
  Empty,
  Facts,
  IconButton,
  Panel,
  Skeleton,
  StateBadge,
  StateIcon,
} from '../../ui/basic';
import { Missing } from '../../ui/missing';
import { Menu, useOverlays } from '../../ui/overlay';
import { ended, useJobActions } from './actions';
import { endText, waits } from './about';
import { MoveDialog } from './bulk';
import { EditDialog } from './edit';
import { Log } from './log';
import { Cards, useReason } from './reason';
import { keptOf } from './kept';
import { commandTexts, draftOf, submission } from './spec';
import { runtime } from './table';

const Chart = later(() => import('../../ui/chart'));

const LONG_COMMAND = 600;
/** The second half of a double click falls on the page of the copy, which has the same button there. */
const DOUBLE_CLICK = 700;
let clonedAt = 0;
const MISSING = 404;

function CommandBlock({ detail }: { detail: JobDetail }) {
  const { t, language } = useLanguage();
  const whole = commandTexts(detail).join('\n');
  const [open, setOpen] = useState(false);
  const long = whole.length > LONG_COMMAND;
  return (
    <div>
      <pre className="quote" tabIndex={0} aria-label={t('col.command')}>
        {long && !open ? `${whole.slice(0, LONG_COMMAND)}…` : whole}
      </pre>
      {long && (
        <Button look="quiet" onClick={() => setOpen(!open)}>
          {open
            ? t('common.less')
            : t('job.wholeCommand', { count: count(whole.length, language) })}
        </Button>
      )}
    </div>
  );
}

/** What stands in the way on each card has a line of its own. */
function WaitReason({ reason }: { reason: Reason }) {
  return (
    <li>
      {useReason(reason)}
      {reason.gpus.length > 0 && <Cards reason={reason} />}
    </li>
  );
}

function Reasons({ id }: { id: number }) {
  const { t } = useLanguage();
  const { data } = useQuery({
    queryKey: ['job', id, 'why'],
    queryFn: () => api.why(id),
    refetchInterval: 5_000,
  });
  if (!data?.reasons.length) return null;
  const outlook = outlookText(data, t);
  return (
    <Panel title={t('why.title')} id="why" className="why">
      <ul>
        {data.reasons.map((reason) => (
          <WaitReason key={reason.kind + reason.text} reason={reason} />
        ))}
      </ul>
      {data.ahead !== null && data.ahead > 0 && (
        <p className="muted">{t('why.ahead', { count: data.ahead })}</p>
      )}
      {outlook && <p className="muted">{outlook}</p>}
    </Panel>
  );
}

function verdict(attempt: Attempt): JobState | null {
  if (attempt.state === 'succeeded' || attempt.state === 'failed' || attempt.state === 'killed') {
    return attempt.state;
  }
  return attempt.ended_at ? null : 'running';
}

function Attempts({
  attempts,
  shown,
  onShow,
}: {
  attempts: Attempt[];
  shown: number;
  onShow: (n: number) => void;
}) {
  const { t, language } = useLanguage();
  const now = useNow(attempts.some((attempt) => !attempt.ended_at));
  const times = attempts.map((attempt) => attempt.started_at).filter((time) => time !== null);
  const from = Math.min(...times);
  const to = Math.max(...attempts.map((attempt) => attempt.ended_at ?? now), from + 1);
  return (
    <Panel title={t('attempts.title')} id="attempts">
      <ol className="attempts">
        {attempts.map((attempt) => {
          const state = verdict(attempt);
          const begin = attempt.started_at ?? from;
          const end = attempt.ended_at ?? now;
          return (
            <li key={attempt.id}>
              <button
                type="button"
                aria-pressed={attempt.number === shown}
                onClick={() => onShow(attempt.number)}
              >
                <span className="row spread">
                  <span className="row">
                    {state ? <StateIcon state={state} /> : null}
                    <strong>{t('attempts.number', { n: attempt.number })}</strong>
                    <span className="muted">
                      {outcomeText(attempt, state ? t(`state.${state}`) : t('attempt.revoked'), t)}
                    </span>
                  </span>
                  <span className="muted nowrap">
                    {attempt.gpu_indices.length > 0 && `GPU ${attempt.gpu_indices.join(', ')} · `}
                    {clock(begin, language)} · {duration(end - begin)}
                  </span>
                </span>
                <span className="attempt-track" aria-hidden>
                  <span
                    className={`bar-${state ?? 'cancelled'}`}
                    style={{
                      left: `${(100 * (begin - from)) / (to - from)}%`,
                      width: `max(4px, ${(100 * (end - begin)) / (to - from)}%)`,
                    }}
                  />
                </span>
                {attempt.message && !isPlain(attempt.message) && (
                  <span className="attempt-message">{attempt.message}</span>
                )}
              </button>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

const EVENTS_SHOWN = 50;

/** What happened to it, the newest first. */
function Happenings({ id, attempts }: { id: number; attempts: Attempt[] }) {
  const { t, language } = useLanguage();
  const detailOf = ({ attempt, detail }: HistoryEvent) => {
    const of = attempts.find((one) => one.id === attempt);
    // Only what ended it has the facts of its end.
    return of?.ended_at && detail?.startsWith(of.message ?? ' ')
      ? told(of, detail, language, t)
      : { text: detail, detail: null };
  };
  const { data } = useQuery({
    queryKey: ['job', id, 'events'],
    queryFn: () => api.events({ job: id, order: 'desc', limit: EVENTS_SHOWN }),
  });
  if (!data?.events.length) return null;
  return (
    <Panel title={t('history.title')} id="happenings">
      <ol className="happenings">
        {data.events.map((event) => {
          const { text: what, detail } = detailOf(event);
          return (
            <li key={event.seq}>
              <time className="muted num nowrap" dateTime={new Date(event.time).toISOString()}>
                {clock(event.time, language)}
              </time>
              <span title={detail ?? undefined}>
                {eventText(event.kind, t)}
                {what && <span className="muted"> · {what}</span>}
              </span>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

function Resources({ detail, attempt }: { detail: JobDetail; attempt: Attempt | undefined }) {
  const { t } = useLanguage();
  const running = attempt !== undefined && !attempt.ended_at;
  const { data } = useQuery({
    // One of the job's: when something happens to it, its end above all, it is asked for once more.
    queryKey: ['job', detail.job.id, 'usage', attempt?.number ?? 0],
    queryFn: () => api.usage(detail.job.id, attempt?.number ?? 1),
    enabled: attempt !== undefined && detail.job.gpus > 0,
    refetchInterval: running ? 3_000 : false,
  });
  const chart = useMemo(() => {
    if (!data || data.points.length < 2) return null;
    const { claim } = data;
    return {
      times: data.points.map((point) => point.t),
      lines: [
        {
          label: t('res.used'),
          colour: '--own',
          fill: true,
          values: data.points.map((p) => p.memory),
        },
        ...(claim === null
          ? []
          : [
              {
                label: t('res.claim'),
                colour: '--foreign',
                dash: true,
                values: data.points.map(() => claim),
              },
            ]),
      ],
    };
  }, [data, t]);
  const { job } = detail;
  const measured = (data?.points ?? []).map((p) => p.memory).filter((value) => value !== null);
  return (
    <Panel title={t('res.title')} id="resources">
      <Facts
        items={[
          [t('fact.gpus'), job.gpus === job.gpus_max ? job.gpus : `${job.gpus}–${job.gpus_max}`],
          [
            t('res.asked'),
            job.gpus ? (job.gpu_memory === null ? t('gpu.whole') : bytes(job.gpu_memory)) : null,
          ],
          [t('res.claimed'), attempt?.gpu_memory ? bytes(attempt.gpu_memory) : null],
          [t('res.now'), running && measured.length ? bytes(measured.at(-1)) : null],
          [t('res.most'), measured.length ? bytes(Math.max(...measured)) : null],
          [t('res.peakGpu'), attempt?.peak_memory ? bytes(attempt.peak_memory) : null],
          [t('res.rss'), attempt?.max_rss ? bytes(attempt.max_rss) : null],
          [
            t('res.cpu'),
            attempt?.user_time_ms !== null && attempt?.user_time_ms !== undefined
              ? duration(attempt.user_time_ms + (attempt.system_time_ms ?? 0))
              : null,
          ],
          [t('fact.cpus'), detail.cpus || null],
          [t('fact.memory'), detail.memory ? bytes(detail.memory) : null],
          [t('fact.timeLimit'), detail.time_ms ? duration(detail.time_ms) : null],
        ]}
      />
      {chart && (
        <Suspense fallback={<Skeleton rows={2} tall />}>
          <Chart
            label={t('res.chart')}
            times={chart.times}
            lines={chart.lines}
            format={bytes}
            inBytes
            height={160}
          />
        </Suspense>
      )}
    </Panel>
  );
}

function Actions({ detail }: { detail: JobDetail }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const [, go] = useLocation();
  const actions = useJobActions();
  const guard = useGuard();
  const [edit, setEdit] = useState(false);
  const [move, setMove] = useState<'queue' | 'priority' | null>(null);
  const { job } = detail;
  const over = ended(job);
  const oneColumn = useNarrow(ONE_COLUMN);
  const [cloning, setCloning] = useState(false);
  const clone = async () => {
    if (cloning || Date.now() - clonedAt < DOUBLE_CLICK) return;
    setCloning(true);
    try {
      const kept = await keptOf(detail);
      const answer = await api.submit(submission(detail, draftOf(detail), kept, newKey()));
      const id = answer.ids[0] ?? 0;
      clonedAt = Date.now();
      say(t('clone.done', { id }), { undo: () => api.kill([id]) });
      go(`/state/${id}`);
    } catch (error) {
      actions.fail(error);
    }
    setCloning(false);
  };
  return (
    <div className="row wrap">
      {over ? (
        <Button
          {...guard}
          icon={RotateCw}
          look="primary"
          onClick={() => void actions.retry([job.id])}
        >
          {t('action.retry')}
        </Button>
      ) : (
        <>
          {job.state === 'paused' ? (
            <Button {...guard} icon={CirclePlay} onClick={() => void actions.resume([job.id])}>
              {t('action.resume')}
            </Button>
          ) : (
            <Button {...guard} icon={CirclePause} onClick={() => void actions.pause([job.id])}>
              {t('action.pause')}
            </Button>
          )}
          <Button
            {...guard}
            icon={Octagon}
            look="danger"
            onClick={() => void actions.kill([job.id])}
          >
            {t('action.kill')}
          </Button>
        </>
      )}
      <Button {...guard} icon={Pencil} onClick={() => setEdit(true)}>
        {t('action.edit')}
      </Button>
      <Button disabled={cloning} {...guard} icon={Copy} onClick={() => void clone()}>
        {t('action.clone')}
      </Button>
      {oneColumn && detail.attempts.length > 0 && (
        // It comes after everything else there.
        <Button icon={ScrollText} onClick={() => document.querySelector('.log')?.scrollIntoView()}>
          {t('log.title')}
        </Button>
      )}
      <Menu
        trigger={<IconButton icon={MoreHorizontal} label={t('action.more')} />}
        items={[
          {
            label: t('action.start'),
            disabled: job.state !== 'queued',
            ...guard,
            onSelect: () => void actions.start([job.id]),
          },
          {
            label: t('action.first'),
            disabled: !waits(job),
            ...guard,
            onSelect: () => void actions.move([job.id], { to: 'first' }),
          },
          {
            label: t('action.last'),
            disabled: !waits(job),
            ...guard,
            onSelect: () => void actions.move([job.id], { to: 'last' }),
          },
          {
            label: t('move.queue'),
            disabled: !waits(job),
            ...guard,
            onSelect: () => setMove('queue'),
          },
          {
            label: t('move.priority'),
            disabled: !waits(job),
            ...guard,
            onSelect: () => setMove('priority'),
          },
          null,
          {
            label: t('action.forget'),
            danger: true,
            disabled: !over,
            ...guard,
            onSelect: () => void actions.forget([job.id]).then((gone) => gone && go(cameFrom())),
          },
        ]}
      />
      {edit && <EditDialog detail={detail} onClose={() => setEdit(false)} />}
      {move && <MoveDialog kind={move} ids={[job.id]} now={job} onClose={() => setMove(null)} />}
    </div>
  );
}

function Detail({ detail }: { detail: JobDetail }) {
  const { t, language } = useLanguage();
  const { job, attempts } = detail;
  const newest = attempts.at(-1)?.number ?? 0;
  const [chosen, setChosen] = useState<number | null>(null);
  const shown = chosen ?? newest;
  const attempt = attempts.find((one) => one.number === shown);
  const now = useNow(!ended(job));
  const params = Object.entries(job.params ?? {});
  const about = endText({ ...job, signal: attempts.at(-1)?.signal ?? null }, language, t);
  const name = job.name || t('gpu.job', { id: job.id });
  useTitle(`${name} #${job.id}`);
  return (
    <>
      <header className="page-head job-head">
        <Link
          href={cameFrom()}
          className="icon-button"
          aria-label={t('help.back')}
          title={t('help.back')}
        >
          <ArrowLeft size={16} aria-hidden />
        </Link>
        <div className="job-title">
          <h1 className="truncate" title={name}>
            {name}
          </h1>
          <span className="muted mono">#{job.id}</span>
          <StateBadge state={job.state} note={failureNote(job, t)} />
        </div>
        <Actions detail={detail} />
      </header>
      {about.text && (
        <p className={`job-message state-${job.state}`}>
          {about.text}
          {about.detail && <small>{about.detail}</small>}
        </p>
      )}
      <div className="job-columns">
        <div className="stack">
          {waits(job) && <Reasons id={job.id} />}
          <Panel>
            <Facts
              items={[
                [
                  t('col.queue'),
                  <Link key="q" href={`/state?queue=${encodeURIComponent(job.queue)}`}>
                    {job.queue}
                  </Link>,
                ],
                [
                  t('col.batch'),
                  job.batch ? (
                    <Link key="b" href={`/state?batch=${job.batch}`}>
                      {job.batch}
                    </Link>
                  ) : null,
                ],
                [t('col.priority'), job.priority],
                [
                  t('col.gpu'),
                  job.gpu_indices.length && job.state !== 'queued'
                    ? job.gpu_indices.join(', ')
                    : null,
                ],
                [t('col.time'), runtime(job, now) === null ? null : duration(runtime(job, now))],
                [t('col.submitted'), clock(job.submitted_at, language)],
                [t('fact.started'), job.started_at ? clock(job.started_at, language) : null],
                [t('fact.ended'), job.ended_at ? clock(job.ended_at, language) : null],
                [t('fact.retries'), job.retries ? `${job.retries_used} / ${job.retries}` : null],
                [
                  t('fact.after'),
                  detail.after.length
                    ? detail.after.map((id) => (
                        <Link key={id} href={`/state/${id}`}>
                          {id}{' '}
                        </Link>
                      ))
                    : null,
                ],
                [t('fact.cwd'), <code key="c">{text(job.cwd)}</code>],
                [
                  t('fact.params'),
                  params.length ? (
                    <span key="p" className="chips">
                      {params.map(([name, value]) => (
                        <span key={name} className="chip mono">
                          {name}={value}
                        </span>
                      ))}
                    </span>
                  ) : null,
                ],
                [
                  t('fact.rules'),
                  Object.keys(detail.rules).length ? (
                    <span key="r" className="chips">
                      {Object.entries(detail.rules).map(([name, value]) => (
                        <span key={name} className="chip mono">
                          {name}={value}
                        </span>
                      ))}
                    </span>
                  ) : null,
                ],
              ]}
            />
            <CommandBlock detail={detail} />
          </Panel>
          {attempts.length > 0 && <Attempts attempts={attempts} shown={shown} onShow={setChosen} />}
          <Resources detail={detail} attempt={attempt} />
          <Happenings id={job.id} attempts={attempts} />
        </div>
        {attempt ? (
          <Log key={attempt.id} job={job.id} attempt={attempt.number} running={!attempt.ended_at} />
        ) : (
          <section className="log nothing">
            <p className="log-note">{t('log.notStarted')}</p>
          </section>
        )}
      </div>
    </>
  );
}

export default function JobPage({ id }: { id: number }) {
  const { t } = useLanguage();
  const [, go] = useLocation();
  const { link } = useLive();
  const known = Number.isSafeInteger(id) && id > 0;
  const { data, error } = useQuery({
    queryKey: ['job', id],
    queryFn: ({ signal }) => api.job(id, signal),
    enabled: known,
  });
  useKeys({ u: () => go(cameFrom()) });
  const missing = error instanceof ApiError && error.status === MISSING;
  if (data && !missing) return <Detail detail={data} />;
  if (!known || (error instanceof ApiError && error.status >= 400)) {
    return (
      <>
        <header className="page-head">
          <h1>{known ? t('gpu.job', { id }) : t('nav.state')}</h1>
        </header>
        <Empty
          icon={SearchX}
          title={t(data ? 'job.forgotten' : 'job.missing')}
          actions={
            <Link href={cameFrom()} className="button">
              {t('help.back')}
            </Link>
          }
        >
          {error && <p>{error.message}</p>}
        </Empty>
      </>
    );
  }
  return link === 'gone' ? <Missing error={error} /> : <Skeleton rows={8} />;
}
