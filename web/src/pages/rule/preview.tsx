// What a change of rules would do to the jobs of now.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import type { Cause, Obstacle, Preview as Told, RuleChange } from '../../api/types';
import { useLanguage, type Translate } from '../../i18n';
import { count } from '../../lib/format';
import { reasonText } from '../../lib/words';
import { Skeleton } from '../../ui/basic';
import { alike } from '../state/reason';

const WAIT = 350;
const SHOWN = 12;
const NO_PROBLEMS: readonly string[] = [];

type Wait = Told['waits'][number];
interface Row {
  wait: Wait;
  was: string;
  is: string;
}

const jobsOf = (rows: readonly Row[]) => rows.reduce((sum, { wait }) => sum + wait.jobs, 0);

const cardsText = (cards: readonly Obstacle[] | undefined, t: Translate): string =>
  alike(cards ?? [], t)
    .map(([gpus, text]) => `GPU ${gpus}: ${text}`)
    .join('; ');

/** What differs; where the reason is the same, of which cards. Of some the daemon alone sees a difference. */
export function rowsOf(waits: readonly Wait[], t: Translate): Row[] {
  const reason = (why: Cause | undefined, words: string | null) =>
    words === null ? t('preview.now') : reasonText(why, words, t);
  return waits.flatMap((wait) => {
    const was = reason(wait.why_before, wait.before);
    const is = reason(wait.why_after, wait.after);
    if (was !== is) return [{ wait, was, is }];
    const cardsWere = cardsText(wait.gpus_before, t);
    const cardsAre = cardsText(wait.gpus_after, t);
    if (cardsWere === cardsAre) return [];
    return [{ wait, was: cardsWere || was, is: cardsAre || is }];
  });
}

function Waits({ rows, more }: { rows: readonly Row[]; more: boolean }) {
  const { t, language } = useLanguage();
  const all = jobsOf(rows);
  const rest = all - jobsOf(rows.slice(0, SHOWN));
  return (
    <>
      <h3>{t(more ? 'preview.waitsMore' : 'preview.waits', { count: count(all, language) })}</h3>
      <ul className="changes">
        {rows.slice(0, SHOWN).map(({ wait, was, is }) => (
          <li key={wait.id}>
            <Link href={`/state/${wait.id}`} className="chip mono">
              {wait.id}
            </Link>
            <span className="was">{was}</span>
            <span>{is}</span>
            {wait.jobs > 1 && (
              <span className="muted">
                {t('preview.like', { count: count(wait.jobs - 1, language) })}
              </span>
            )}
          </li>
        ))}
      </ul>
      {rest > 0 && <p className="muted">{t('preview.rest', { count: count(rest, language) })}</p>}
      {more && <p className="muted">{t('preview.untold')}</p>}
    </>
  );
}

export function Outcome({ told: { starts, waits, more, problems } }: { told: Told }) {
  const { t, language } = useLanguage();
  const rows = rowsOf(waits, t);
  return (
    <div className="preview" aria-live="polite">
      {problems.map((problem) => (
        <p key={problem} className="error-text">
          {problem}
        </p>
      ))}
      {!problems.length && !starts.length && !rows.length && (
        <p className="muted">{t('preview.same')}</p>
      )}
      {starts.length > 0 && (
        <>
          <h3>{t('preview.starts', { count: count(starts.length, language) })}</h3>
          <p className="chips">
            {starts.slice(0, SHOWN).map((id) => (
              <Link key={id} href={`/state/${id}`} className="chip mono">
                {id}
              </Link>
            ))}
            {starts.length > SHOWN && (
              <span className="muted">+{count(starts.length - SHOWN, language)}</span>
            )}
          </p>
        </>
      )}
      {rows.length > 0 && <Waits rows={rows} more={more} />}
    </div>
  );
}

/** Asked shortly after somebody has stopped typing, and again as time goes by. */
export function usePreview(change: RuleChange, wanted: boolean) {
  const [asked, setAsked] = useState(change);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(change), WAIT);
    return () => clearTimeout(timer);
  }, [change]);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ['rulePreview', asked],
    queryFn: () => api.previewRules(asked),
    refetchInterval: 5_000,
    placeholderData: (before) => before,
    enabled: wanted,
  });
  const current = asked === change && !isPlaceholderData;
  return { told: data, error, problems: (current ? data?.problems : null) ?? NO_PROBLEMS };
}

export function Preview({ told, error }: Pick<ReturnType<typeof usePreview>, 'told' | 'error'>) {
  if (error) return <p className="error-text">{error.message}</p>;
  return told ? <Outcome told={told} /> : <Skeleton rows={3} />;
}
