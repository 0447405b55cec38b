import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Eye, Search, Undo2 } from 'lucide-react';
import { useId, useMemo, useState, type ReactNode } from 'react';
import { api } from '../../api/client';
import { useLive, useMayChange } from '../../api/data';
import type { Rule } from '../../api/types';
import { useLanguage, type Key, type Translate } from '../../i18n';
import { useDraft } from '../../lib/draft';
import { leaves } from '../../lib/keys';
import { ONE_COLUMN, useNarrow } from '../../lib/narrow';
import { Button, IconButton, Panel, Skeleton } from '../../ui/basic';
import { Select } from '../../ui/fields';
import { useFloor } from '../../ui/floor';
import { Missing } from '../../ui/missing';
import { useOverlays } from '../../ui/overlay';
import { changeOf, isOwn, scopeQuery, undoOf, unsent, type Draft } from './change';
import { choices, grouped } from './groups';
import { helpInChinese } from './help.zh';
import { Changes } from './history';
import { Preview, usePreview } from './preview';

const UNCHANGED: Draft = {};
const orUnchanged = (draft: Draft) => (Object.keys(draft).length ? draft : UNCHANGED);

/** What is not to be chosen from a list. */
const KINDS: Record<string, Key> = {
  N: 'ruleType.number',
  SIZE: 'ruleType.size',
  TIME: 'ruleType.time',
  PERCENT: 'ruleType.percent',
  LIST: 'ruleType.list',
};

/** Where a value comes from; the names of files are the same in every language. */
export function sourceName(source: string, t: Translate): string {
  if (source === 'default' || source === 'this run' || source === 'the store') {
    return t(`ruleSource.${source}`);
  }
  const [, kind, name = ''] = /^(queue|batch) (.+)$/.exec(source) ?? [];
  return kind === 'queue' || kind === 'batch' ? t(`rule.${kind}`, { name }) : source;
}

/** Whose rules are shown: of all queues, and of the newest batches until older ones are wanted, too. */
function Scope({ value, onChange }: { value: string; onChange: (scope: string) => void }) {
  const { t } = useLanguage();
  const { data: queues } = useQuery({ queryKey: ['queues'], queryFn: api.queues });
  const batches = useInfiniteQuery({
    queryKey: ['batches', 'pages'],
    queryFn: ({ pageParam }) => api.batches(pageParam),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const options = useMemo(
    () => [
      ['instance', t('rule.instance')] as const,
      ...(queues?.queues ?? []).map(
        (queue) => [`queue:${queue.name}`, t('rule.queue', { name: queue.name })] as const,
      ),
      ...(batches.data?.pages ?? [])
        .flatMap((page) => page.batches)
        .map(
          ({ id, name }) =>
            [
              `batch:${id}`,
              t('rule.batch', { name: name ? `${id} · ${name}` : String(id) }),
            ] as const,
        ),
    ],
    [queues, batches.data, t],
  );
  return (
    <div className="row">
      <Select hidden label={t('rule.scope')} value={value} options={options} onChange={onChange} />
      {batches.hasNextPage && (
        <Button
          look="quiet"
          disabled={batches.isFetchingNextPage}
          onClick={() => void batches.fetchNextPage()}
        >
          {t('rule.older')}
        </Button>
      )}
    </div>
  );
}

function Value({
  rule,
  value,
  onChange,
  disabled,
  problem,
}: {
  rule: Rule;
  value: string;
  onChange: (value: string) => void;
  disabled: boolean;
  /** Where it is told what is wrong with the value; undefined: nothing is. */
  problem: string | undefined;
}) {
  const { t } = useLanguage();
  const options = choices(rule.type);
  if (options) {
    return (
      <Select
        hidden
        label={rule.key}
        value={value}
        disabled={disabled}
        options={options.map((option) => [option, option])}
        onChange={onChange}
      />
    );
  }
  return (
    <input
      className="input mono"
      aria-label={rule.key}
      title={t('rule.type', { type: rule.type })}
      value={value}
      disabled={disabled}
      spellCheck={false}
      aria-invalid={problem ? true : undefined}
      aria-describedby={problem}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function RuleRow({
  rule,
  draft,
  onChange,
  own,
  disabled,
  problem,
}: {
  rule: Rule;
  draft: string | null | undefined;
  onChange: (value: string | null | undefined) => void;
  /** Whether this scope itself says something of it. */
  own: boolean;
  disabled: boolean;
  /** What is wrong with what was written; null: nothing. */
  problem: string | null;
}) {
  const { t, language } = useLanguage();
  const changed = draft !== undefined;
  const kind = KINDS[rule.type];
  const id = useId();
  const help = (language === 'zh' ? helpInChinese(rule.key) : undefined) ?? rule.help;
  return (
    <li className={`rule ${changed ? 'changed' : ''}`}>
      <div className="rule-name">
        <code>{rule.key}</code>
        <span className={`source ${rule.source === 'default' ? '' : 'own'}`}>
          {sourceName(rule.source, t)}
        </span>
        {kind && <span className="muted rule-type">{t(kind)}</span>}
      </div>
      <p className="rule-help">{help}</p>
      <div className="rule-value">
        {draft === null ? (
          <span className="muted">{t('rule.unset')}</span>
        ) : (
          <Value
            rule={rule}
            value={draft ?? rule.value}
            disabled={disabled}
            problem={problem === null ? undefined : id}
            onChange={(value) => onChange(value === rule.value ? undefined : value)}
          />
        )}
        {changed ? (
          <IconButton
            icon={Undo2}
            label={t('rule.revert', { key: rule.key })}
            onClick={() => onChange(undefined)}
          />
        ) : own && !disabled ? (
          <Button
            look="quiet"
            onClick={() => onChange(null)}
            aria-label={t('rule.unsetOf', { key: rule.key })}
          >
            {t('rule.takeBack')}
          </Button>
        ) : (
          <span className="muted rule-default">
            {rule.default !== null &&
              rule.value !== rule.default &&
              t('rule.default', { value: rule.default })}
          </span>
        )}
        {problem !== null && (
          <p id={id} className="error-text rule-problem">
            {problem}
          </p>
        )}
      </div>
    </li>
  );
}

/** What can be done with what was changed. */
function Decide({
  whole,
  disabled,
  onApply,
  onDiscard,
}: {
  /** Of the whole instance: its rules can be kept in a file. */
  whole: boolean;
  disabled: boolean;
  onApply: (file: boolean) => void;
  onDiscard: () => void;
}) {
  const { t } = useLanguage();
  return (
    <>
      <Button look="primary" disabled={disabled} onClick={() => onApply(false)}>
        {t(whole ? 'rule.applyRun' : 'rule.apply')}
      </Button>
      {whole && (
        <Button disabled={disabled} onClick={() => onApply(true)}>
          {t('rule.applyFile')}
        </Button>
      )}
      <Button look="quiet" onClick={onDiscard}>
        {t('rule.discard')}
      </Button>
    </>
  );
}

/** Where there is one column the preview is far from the rules: what was changed stays in reach. */
function EditBar({ count, children }: { count: number; children: ReactNode }) {
  const { t } = useLanguage();
  const floor = useFloor();
  return (
    <div ref={floor} className="bulk" role="toolbar" aria-label={t('rule.changed', { count })}>
      <strong>{t('rule.changed', { count })}</strong>
      <Button
        look="quiet"
        icon={Eye}
        onClick={() => document.getElementById('preview')?.scrollIntoView({ block: 'center' })}
      >
        {t('preview.title')}
      </Button>
      <span className="spacer" />
      {children}
    </div>
  );
}

export default function RulePage() {
  const { t } = useLanguage();
  const mayChange = useMayChange();
  const { say } = useOverlays();
  const { link } = useLive();
  const client = useQueryClient();
  const [scope, setScope] = useState('instance');
  const [wanted, setWanted] = useState('');
  const [draft, setDraft] = useDraft(`rules ${scope}`, UNCHANGED);
  const oneColumn = useNarrow(ONE_COLUMN);
  const { data, error, isPending } = useQuery({
    queryKey: ['rules', scope],
    queryFn: () => api.rules(scopeQuery(scope)),
  });
  const discard = () => setDraft(() => UNCHANGED);
  const change = useMemo(() => changeOf(draft, scope, false), [draft, scope]);
  const edited = Object.keys(draft).length;
  const preview = usePreview(change, edited > 0);
  /** A problem begins with the name of its rule. */
  const problemOf = (key: string): string | null =>
    preview.problems.find((problem) => problem.startsWith(`${key}: `))?.slice(key.length + 2) ??
    null;
  const save = useMutation({
    mutationFn: (file: boolean) => api.setRules(changeOf(draft, scope, file)),
    // By the time of the answer the rules may be known as they are now, and others be edited.
    onMutate: (file) => ({
      sent: draft,
      back: undoOf(draft, data?.rules ?? [], scope, file),
      settle: setDraft,
    }),
    onSuccess: (_rules, _file, { sent, back, settle }) => {
      settle((now) => orUnchanged(unsent(now, sent)));
      void client.invalidateQueries({ queryKey: ['rules'] });
      say(t('rule.saved', { count: Object.keys(sent).length }), {
        undo: () =>
          void api.setRules(back).then(
            () => client.invalidateQueries({ queryKey: ['rules'] }),
            (failure: Error) => say(failure.message, { tone: 'bad' }),
          ),
      });
    },
    onError: (failure) => say(failure.message, { tone: 'bad' }),
  });
  const set = (key: string) => (value: string | null | undefined) =>
    setDraft((now) => {
      const next = { ...now };
      if (value === undefined) delete next[key];
      else next[key] = value;
      return orUnchanged(next);
    });
  const decide = mayChange && (
    <Decide
      whole={scope === 'instance'}
      disabled={save.isPending || preview.problems.length > 0}
      onApply={(file) => save.mutate(file)}
      onDiscard={discard}
    />
  );

  return (
    <>
      <header className="page-head">
        <h1>{t('nav.rule')}</h1>
        <Scope value={scope} onChange={setScope} />
        <div className="search">
          <Search size={15} aria-hidden />
          <input
            data-search
            type="search"
            aria-label={t('rule.search')}
            placeholder={t('rule.search')}
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
            onKeyDown={(event) => void leaves(event)}
          />
          <kbd aria-hidden>/</kbd>
        </div>
      </header>
      <p className="muted lead">{t('rule.lead')}</p>
      <div className="rule-columns">
        <div className="stack">
          {isPending && link !== 'gone' && <Skeleton rows={10} />}
          {!data && <Missing error={error} />}
          {data &&
            grouped(data.rules, wanted).map(([group, rules]) => (
              <Panel key={group} title={t(`ruleGroup.${group}`)} id={`group-${group}`}>
                <ul className="rules">
                  {rules.map((rule) => (
                    <RuleRow
                      key={rule.key}
                      rule={rule}
                      draft={draft[rule.key]}
                      onChange={set(rule.key)}
                      own={isOwn(rule, scope)}
                      disabled={!mayChange}
                      problem={rule.key in draft ? problemOf(rule.key) : null}
                    />
                  ))}
                </ul>
              </Panel>
            ))}
          {data && grouped(data.rules, wanted).length === 0 && (
            <p className="muted">{t('rule.noneFound')}</p>
          )}
        </div>
        <div className="stack sticky">
          <Panel title={t('preview.title')} id="preview">
            {edited ? (
              <>
                <Preview told={preview.told} error={preview.error} />
                {!oneColumn && <div className="row wrap">{decide}</div>}
              </>
            ) : (
              <p className="muted row">
                <Eye size={15} aria-hidden />
                {t('preview.empty')}
              </p>
            )}
          </Panel>
          {!oneColumn && <Changes scrolls />}
        </div>
        {oneColumn && <Changes />}
      </div>
      {oneColumn && edited > 0 && <EditBar count={edited}>{decide}</EditBar>}
    </>
  );
}
