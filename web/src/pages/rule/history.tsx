// Which rules were changed, where, by whom, and what held before.

import { useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { useLanguage, type Translate } from '../../i18n';
import { clock } from '../../lib/format';
import { Panel, Skeleton } from '../../ui/basic';
import { Missing } from '../../ui/missing';

const SHOWN = 50;

export interface RuleNews {
  /** As the daemon says it: "for this run", "of queue 'car'". */
  where: string;
  who: string | null;
  /** Before: null where that is not told, or is the same. */
  values: { key: string; before: string | null; after: string; unset: boolean }[];
}

/** Null: told in another way, as older daemons do. */
export function parseNews(detail: string): RuleNews | null {
  const [, where, who = null, list] =
    /^rules (.+?)(?:, by (.+?))?: ((?:[a-z][\w.]*|queue\..+?|resources\..+?)=.*)$/s.exec(detail) ??
    [];
  if (where === undefined || list === undefined) return null;
  const values = [...list.matchAll(/(.+?)=(.*?)(?: \(was (.*?)(, unset)?\))?(?:, |$)/gs)];
  return {
    where,
    who,
    values: values.map(([, key = '', after = '', before = null, unset]) => ({
      key,
      before,
      after,
      unset: unset !== undefined,
    })),
  };
}

function whereText(where: string, t: Translate): string {
  if (where === 'for this run') return t('ruleSource.this run');
  if (where === 'for berth.yaml') return t('rule.savedIn');
  if (where === 'of berth.yaml') return t('rule.readFrom');
  const [, kind, name = ''] = /^of (queue|batch) '?(.+?)'?$/.exec(where) ?? [];
  return kind === 'queue' || kind === 'batch' ? t(`rule.${kind}`, { name }) : where;
}

const whoText = (who: string, t: Translate): string =>
  who === 'a browser' ? t('tokenKind.browser') : who.replace(/^token /, '');

function News({ detail }: { detail: string }) {
  const { t } = useLanguage();
  const news = parseNews(detail);
  if (!news) return <code>{detail}</code>;
  return (
    <>
      <span className="muted">
        {whereText(news.where, t)}
        {news.who !== null && ` · ${whoText(news.who, t)}`}
      </span>
      {news.values.map(({ key, before, after, unset }) => (
        <span key={key} className="news">
          <code>{key}</code>{' '}
          {before !== null && before !== after && (
            <>
              <span className="was">{before}</span> <span aria-hidden>→</span>{' '}
            </>
          )}
          <strong>{after}</strong>
          {unset && <span className="muted"> · {t('rule.unset')}</span>}
        </span>
      ))}
    </>
  );
}

export function Changes({ scrolls = false }: { scrolls?: boolean }) {
  const { t, language } = useLanguage();
  const { data, isPending, error } = useQuery({
    queryKey: ['rules', 'history'],
    queryFn: api.ruleHistory,
  });
  return (
    <Panel title={t('rule.history')} id="rule-history">
      {isPending && <Skeleton rows={3} />}
      {!data && <Missing error={error} />}
      {data?.changes.length === 0 && <p className="muted">{t('rule.noHistory')}</p>}
      {data && data.changes.length > 0 && (
        <div
          className={scrolls ? 'scroll-y' : undefined}
          {...(scrolls ? { tabIndex: 0, role: 'group', 'aria-labelledby': 'rule-history' } : {})}
        >
          <ol className="history">
            {data.changes.slice(0, SHOWN).map((change) => (
              <li key={change.seq}>
                <time className="muted nowrap">{clock(change.time, language)}</time>
                <div className="news-lines">
                  <News detail={change.detail} />
                </div>
              </li>
            ))}
          </ol>
        </div>
      )}
    </Panel>
  );
}
