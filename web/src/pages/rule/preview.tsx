// What a change of rules would do to the jobs of now.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import type { Cause, Preview as Told, RuleChange } from '../../api/types';
import { useLanguage } from '../../i18n';
import { count } from '../../lib/format';
import { reasonText } from '../../lib/words';
import { Skeleton } from '../../ui/basic';

const WAIT = 350;
const SHOWN = 12;

const jobsOf = (waits: Told['waits']) => waits.reduce((sum, wait) => sum + wait.jobs, 0);

function Waits({ waits, more }: Pick<Told, 'waits' | 'more'>) {
  const { t, language } = useLanguage();
  const all = jobsOf(waits);
  const rest = all - jobsOf(waits.slice(0, SHOWN));
  const reason = (why: Cause | undefined, words: string | null) =>
    words === null ? t('preview.now') : reasonText(why, words, t);
  return (
    <>
      <h3>{t(more ? 'preview.waitsMore' : 'preview.waits', { count: count(all, language) })}</h3>
      <ul className="changes">
        {waits.slice(0, SHOWN).map((wait) => (
          <li key={wait.id}>
            <Link href={`/state/${wait.id}`} className="chip mono">
              {wait.id}
            </Link>
            <span className="was">{reason(wait.why_before, wait.before)}</span>
            <span>{reason(wait.why_after, wait.after)}</span>
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
  return (
    <div className="preview" aria-live="polite">
      {problems.map((problem) => (
        <p key={problem} className="error-text">
          {problem}
        </p>
      ))}
      {!problems.length && !starts.length && !waits.length && (
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
      {waits.length > 0 && <Waits waits={waits} more={more} />}
    </div>
  );
}

export function Preview({ change }: { change: RuleChange }) {
  const [asked, setAsked] = useState(change);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(change), WAIT);
    return () => clearTimeout(timer);
  }, [change]);
  const { data, error, isPending } = useQuery({
    queryKey: ['rulePreview', asked],
    queryFn: () => api.previewRules(asked),
    refetchInterval: 5_000,
    placeholderData: (before) => before,
  });
  if (isPending) return <Skeleton rows={3} />;
  return error ? <p className="error-text">{error.message}</p> : <Outcome told={data} />;
}
