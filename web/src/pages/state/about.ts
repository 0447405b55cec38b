// What is said of a job in one line, beside its state.

import type { Job } from '../../api/types';
import type { Language, Translate } from '../../i18n';
import { failureNote, told, waitText, type Told } from '../../lib/words';
import { ended } from './actions';

/** It has not begun, or is to begin again. */
export const waits = ({ state, why }: Pick<Job, 'state' | 'why'>): boolean =>
  state === 'queued' || (state === 'paused' && why?.kind === 'held');

/** How often it may run: as often as it has, what did not count among it, and as the retries that are left allow. */
export function tries(
  job: Pick<Job, 'state' | 'why' | 'attempts' | 'retries' | 'retries_used'>,
): number {
  const left = Math.max(0, job.retries - job.retries_used);
  return job.attempts + left + (waits(job) ? 1 : 0);
}

type End = Pick<Job, 'state' | 'message' | 'failure_class' | 'exit_code'>;

const NEXT = /; (?:trying again|waiting again)\b.*$/;

/**
 * Of a job that ended, how; of one that is to run again, or does, how its last try ended: what was to come of that
 * has come by now, or is told where it says why it waits.
 */
export function endText(
  job: End & { signal?: number | null },
  language: Language,
  t: Translate,
): Told {
  if (ended(job) || !job.message) return told(job, job.message, language, t);
  const { text, detail } = told(job, job.message.replace(NEXT, ''), language, t);
  return { text: text === null ? null : t('job.lastTry', { what: text }), detail };
}

/** Why it waits, after what became of its last try; of one that ended, how. */
export function aboutText(
  job: End & Pick<Job, 'reason' | 'why'>,
  language: Language,
  t: Translate,
): Told {
  const note = failureNote(job, t);
  const wait = ended(job) ? null : waitText(job, t);
  if (wait !== null) return { text: note ? `${note} · ${wait}` : wait, detail: null };
  const how = endText(job, language, t);
  return how.text === null ? { text: note, detail: null } : how;
}
