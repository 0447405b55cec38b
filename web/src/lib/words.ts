// Sentences from what the daemon tells as data, in the language of the page. What is not known here,
// or comes without its facts, is told in the daemon's own words.

import type { Attempt, Cause, FailureClass, Gpu, Job, Obstacle, Why } from '../api/types';
import type { Key, Language, Translate } from '../i18n';
import { daemonEn } from '../i18n/en.daemon';
import { bytes, duration } from './format';
import { known, said } from './said';

const SHOWN_JOBS = 5;

/** "job 3", "jobs 3, 4 and 7 more". */
function jobsText(ids: readonly number[], all: number, t: Translate): string {
  const shown = ids.slice(0, SHOWN_JOBS).join(', ');
  return all > SHOWN_JOBS
    ? t('reason.jobsMore', { ids: shown, more: all - SHOWN_JOBS })
    : t('reason.jobs', { ids: shown, count: all });
}

/** "waits for jobs 3, 4 to succeed". */
export const waitsFor = (
  ids: readonly number[],
  outcome: 'ok' | 'any' | 'failed',
  t: Translate,
): string => t(`reason.dependency.${outcome}`, { jobs: jobsText(ids, ids.length, t) });

type Numbers = Partial<Record<string, number>>;
type Names = Partial<Record<string, string>>;

function gpuText(
  { asked, fitting, possible, total, gpu_left: left }: Numbers,
  names: Names,
  t: Translate,
) {
  if (left !== undefined) {
    const { gpus = '', absent = '' } = names;
    return t(absent ? 'reason.fencedAbsent' : 'reason.fenced', { gpus: gpus || '*', absent, left });
  }
  if (
    asked === undefined ||
    fitting === undefined ||
    possible === undefined ||
    total === undefined
  ) {
    if (names['error'] === undefined) return null;
    return names['error']
      ? t('reason.unseen', { error: said(names['error'], t) })
      : t('reason.stale');
  }
  const what = asked === 1 ? t('reason.gpuOne') : t('reason.gpuSome', { asked, fitting, total });
  return possible < asked ? t('reason.gpuNever', { what }) : what;
}

/** A sentence for a kind that has these facts; null: something is missing. */
function worded(cause: Cause, t: Translate): string | null {
  const numbers: Numbers = cause.numbers;
  const names: Names = cause.names;
  const jobs = cause.jobs.length
    ? jobsText(cause.jobs, numbers['jobs'] ?? cause.jobs.length, t)
    : null;
  const { asked, free, total, limit, running, available, in_ms: delay } = numbers;
  const { queue } = names;
  switch (cause.kind) {
    case 'held':
    case 'instance_paused':
    case 'due':
      return t(`reason.${cause.kind}`);
    case 'parked':
      return t('reason.parked', { gpus: names['gpus'] ?? '', time: duration(numbers['quiet_ms']) });
    case 'delayed':
      return delay === undefined ? null : t('reason.delayed', { time: duration(delay) });
    case 'retry':
      if (delay === undefined) return null;
      return queue === undefined || !jobs
        ? t('reason.retry', { time: duration(delay) })
        : t('reason.retryQueue', { queue, jobs, time: duration(delay) });
    case 'dependency': {
      const { outcome } = names;
      if (!jobs || (outcome !== 'ok' && outcome !== 'any' && outcome !== 'failed')) return null;
      return t(`reason.dependency.${outcome}`, { jobs });
    }
    case 'space':
      return t('reason.space', { detail: said(names['detail'] ?? '', t) });
    case 'max_concurrent':
    case 'batch_limit':
      if (limit === undefined && jobs)
        return t('reason.placeKept', { jobs, count: cause.jobs.length });
      return limit === undefined || running === undefined
        ? null
        : t(`reason.${cause.kind}`, { running, limit });
    case 'submitting':
      return total === undefined
        ? t('reason.givenUp')
        : t('reason.submitting', { arrived: numbers['arrived'] ?? 0, total });
    case 'queue_paused':
      return queue === undefined ? null : t('reason.queue_paused', { queue });
    case 'queue_limit':
      if (limit === undefined && jobs)
        return t('reason.placeKept', { jobs, count: cause.jobs.length });
      return queue === undefined || limit === undefined
        ? null
        : t('reason.queue_limit', { queue, limit });
    case 'queue_order':
      return queue === undefined || !jobs ? null : t('reason.queue_order', { queue, jobs });
    case 'cpus':
      if (asked === undefined || free === undefined || total === undefined) return null;
      return t(asked > total ? 'reason.cpusNever' : 'reason.cpus', { asked, free, total });
    case 'memory':
      if (asked === undefined || free === undefined || total === undefined) return null;
      return t(asked > total ? 'reason.memoryNever' : 'reason.memory', {
        asked: bytes(asked),
        free: bytes(free),
        total: bytes(total),
      });
    case 'host_memory':
      if (available === undefined) return null;
      return t('reason.host_memory', {
        available: bytes(available),
        kept: bytes(numbers['kept']),
      });
    case 'resource':
      if (asked === undefined || free === undefined) return null;
      return t('reason.resource', { asked, free, resource: names['resource'] ?? '' });
    case 'quota': {
      const { used, allowed } = numbers;
      if (used === undefined || allowed === undefined) return null;
      const few = asked !== undefined && asked > allowed;
      const of = names['of'] === 'batch' ? 'batch' : 'instance';
      const one = allowed === 1 && used === 1 ? 'reason.quotaOne' : 'reason.quota';
      const what = few
        ? t(`reason.quotaFew.${of}`, { asked, allowed })
        : t(`${one}.${of}`, { used, allowed });
      return names['rules'] ? `${what} (${names['rules']})` : what;
    }
    case 'no_gpu':
      if (asked === undefined || total === undefined) return null;
      return total === 0 ? t('reason.noGpu') : t('reason.fewGpus', { asked, total });
    case 'gpu':
      return gpuText(numbers, names, t);
  }
}

export function reasonText(cause: Cause | undefined, text: string, t: Translate): string {
  return (cause && worded(cause, t)) ?? text;
}

/** Why a waiting job waits, in one line. */
export function waitText(job: Pick<Job, 'reason' | 'why'>, t: Translate): string | null {
  return job.reason === null ? null : reasonText(job.why, job.reason, t);
}

/** What would have to end for it to have cards. */
export function outlookText(why: Pick<Why, 'outlook' | 'foreseen'>, t: Translate): string | null {
  if (!why.foreseen) return why.outlook;
  const { gpus, jobs, within_ms: within } = why.foreseen;
  return t(within === null ? 'outlook.some' : 'outlook.within', {
    gpus: gpus.join(', '),
    jobs: jobsText(jobs, jobs.length, t),
    count: jobs.length,
    time: duration(within),
  });
}

/** What berth does not know is told in the driver's words; that the card is lost, in the page's. */
const troubleText = (trouble: string, t: Translate): string =>
  known(trouble, t) ??
  t(/\blost\b|fallen off the bus/i.test(trouble) ? 'obstacle.lost' : 'obstacle.trouble', {
    detail: trouble,
  });

export function obstacleText(obstacle: Obstacle, t: Translate): string {
  const { kind, detail = '', free = 0, strangers = 0, margin = 0, rule } = obstacle;
  const needed = bytes(obstacle.needed ?? 0);
  const byRule = (what: string) => (rule ? t('obstacle.byRule', { what, rule }) : what);
  const jobs = jobsText(obstacle.jobs, obstacle.jobs.length, t);
  switch (kind) {
    case 'trouble':
      return troubleText(obstacle.text, t);
    case 'stale':
      return said(detail, t) || t('obstacle.stale');
    case 'claimed':
      if (detail === 'maximize_resource_utilization') return t('obstacle.alone', { jobs });
      return t(detail ? 'obstacle.whole' : 'obstacle.claimed', { jobs });
    case 'ending':
    case 'held':
      return t(`obstacle.${kind}`, { jobs });
    case 'avoided':
      return strangers
        ? t('obstacle.lostMemory', { strangers: bytes(strangers) })
        : t('obstacle.avoided');
    case 'utilization':
      return detail
        ? t('obstacle.utilizationUnknown')
        : t(obstacle.own ? 'obstacle.ownUtilization' : 'obstacle.utilization', {
            utilization: obstacle.utilization ?? 0,
            limit: obstacle.utilization_max ?? 0,
          });
    case 'memory': {
      let what = byRule(
        margin
          ? t('obstacle.memoryMargin', { free: bytes(free), margin: bytes(margin), needed })
          : t('obstacle.memory', { free: bytes(free), needed }),
      );
      if (obstacle.jobs.length) what = t('obstacle.shared', { what, jobs });
      if (strangers)
        what = t(obstacle.own ? 'obstacle.ownHold' : 'obstacle.othersHold', {
          what,
          strangers: bytes(strangers),
        });
      return what;
    }
    case 'strangers':
      return t(obstacle.own ? 'obstacle.ownStrangers' : 'obstacle.strangers');
    case 'too_small':
      return byRule(t('obstacle.too_small', { free: bytes(free), needed }));
    case 'drained':
      return t('obstacle.drained', { detail: said(detail, t) });
    case 'keep_memory':
      return t('obstacle.keep_memory', {
        detail,
        used: bytes(obstacle.in_use ?? 0),
        total: bytes(obstacle.total ?? 0),
      });
    case 'left':
    case 'not_allowed':
    case 'other_berth':
    case 'own_process':
    case 'quiet':
    case 'unknown':
      return t(`obstacle.${kind}`, { detail });
  }
}

/** Why a card is not used though it is there; null: it is. */
export function cardText(
  gpu: Pick<Gpu, 'trouble' | 'reserved' | 'reserved_kind' | 'reserved_detail' | 'drained_why'>,
  t: Translate,
): string | null {
  if (gpu.trouble !== null) {
    return gpu.drained_why
      ? t('obstacle.drained', { detail: said(gpu.drained_why, t) })
      : troubleText(gpu.trouble, t);
  }
  if (gpu.reserved !== null && gpu.reserved_kind) {
    return t(`obstacle.${gpu.reserved_kind}`, { detail: gpu.reserved_detail ?? '' });
  }
  return gpu.reserved;
}

export const classText = (failure: NonNullable<FailureClass>, t: Translate): string =>
  t(`class.${failure}`);

/** What is said beside a job's state: its class, unless that is merely a bad exit, or the code. */
export function failureNote(
  job: Pick<Job, 'state' | 'failure_class' | 'exit_code'>,
  t: Translate,
): string | null {
  if (job.failure_class && job.failure_class !== 'exit') return classText(job.failure_class, t);
  if (job.state === 'failed' && job.exit_code !== null) {
    return t('class.exitCode', { code: job.exit_code });
  }
  return null;
}

/** "failed · out of GPU memory · exit 1", without saying the same twice. */
export function outcomeText(
  attempt: Pick<Attempt, 'failure_class' | 'exit_code' | 'signal'>,
  state: string,
  t: Translate,
): string {
  const words = [state];
  if (attempt.failure_class && attempt.failure_class !== 'exit') {
    words.push(classText(attempt.failure_class, t));
  }
  if (attempt.exit_code) words.push(t('class.exitCode', { code: attempt.exit_code }));
  if (attempt.signal) words.push(t('class.signal', { signal: attempt.signal }));
  return words.join(' · ');
}

type Ended = Pick<Attempt, 'failure_class' | 'exit_code'> & {
  state: string;
  signal?: number | null;
};

/** How it ended, by facts alone; null: they do not tell. */
function endText({ state, failure_class: failure, exit_code: code, signal }: Ended, t: Translate) {
  if (failure && failure !== 'exit') {
    const what = classText(failure, t);
    return code ? t('end.with', { what, code }) : what;
  }
  if (signal) return t('end.signal', { signal });
  if (code) return t('end.exit', { code });
  return state === 'killed' ? t('end.killed') : null;
}

const AGAIN =
  /; trying again( elsewhere)?(?: in ([^()]+))? \((retry|not its fault,) (\d+) of (\d+)\)$/;
const AGAIN_WITH = /; trying again with (a whole card|.+)$/;
const NONE_LEFT = /; no retry left after (\d+)$/;

/** What comes of it stands at the end of the daemon's sentence, in a few forms that do not change. */
function nextText(message: string, t: Translate): string | null {
  const again = AGAIN.exec(message);
  if (again) {
    const [, , time, which, n = '', all = ''] = again;
    const what = t(which === 'retry' ? 'next.retry' : 'next.excused', { n, all });
    return time ? t('next.in', { time, what }) : what;
  }
  const more = AGAIN_WITH.exec(message)?.[1];
  if (more) return more === 'a whole card' ? t('next.whole') : t('next.with', { more });
  const tried = NONE_LEFT.exec(message)?.[1];
  if (tried) return t('next.none', { count: tried });
  return message.endsWith('; waiting again') ? t('next.waits') : null;
}

/** Whether the daemon's sentence says no more than the facts beside it. */
export const isPlain = (message: string): boolean =>
  /^(exited with code \d+|killed by SIG\w+|killed on request)$/.test(
    message.replace(AGAIN, '').replace(NONE_LEFT, ''),
  );

export interface Told {
  text: string | null;
  /** The daemon's own sentence, where it has more. */
  detail: string | null;
}

/** How it ended, in the language of the page. The daemon's sentences are English and stay so there. */
export function told(of: Ended, message: string | null, language: Language, t: Translate): Told {
  const end = message === null || language === 'en' ? null : endText(of, t);
  if (message === null || end === null) return { text: message, detail: null };
  const next = nextText(message, t);
  return {
    text: next ? t('end.next', { end, next }) : end,
    detail: isPlain(message) ? null : message,
  };
}

/** What happened, by its kind. */
export function eventText(kind: string, t: Translate): string {
  const key = `event.${kind}`;
  return key in daemonEn ? t(key as Key) : kind;
}
