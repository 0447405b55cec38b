// Submit a job again, changed.

import { useQuery } from '@tanstack/react-query';
import { Plus, Trash2 } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import type { JobDetail } from '../../api/types';
import { useLanguage } from '../../i18n';
import { clock } from '../../lib/format';
import { newKey } from '../../lib/key';
import { waitsFor } from '../../lib/words';
import { Button, IconButton } from '../../ui/basic';
import { Field, TextField } from '../../ui/fields';
import { Dialog, useOverlays } from '../../ui/overlay';
import { NOTHING, keptOf, type Kept } from './kept';
import { check, draftOf, submission, type Draft, type Line } from './spec';

const MOST_ROWS = 12;

/** A field for each command: one with many lines, a heredoc for example, stays one. */
function Commands({
  commands,
  error,
  onChange,
}: {
  commands: string[];
  error: string | null;
  onChange: (commands: string[]) => void;
}) {
  const { t } = useLanguage();
  const set = (at: number, text: string) =>
    onChange(commands.map((command, i) => (i === at ? text : command)));
  return (
    <>
      {commands.map((command, i) => (
        <Field
          key={i}
          label={commands.length > 1 ? t('edit.commandOf', { n: i + 1 }) : t('col.command')}
          error={i === 0 ? error : null}
          hint={i === commands.length - 1 ? t('edit.commandHint') : undefined}
        >
          {(id, about) => (
            <div className="row top">
              <textarea
                id={id}
                aria-describedby={about}
                className="input mono grow"
                rows={Math.min(MOST_ROWS, command.split('\n').length + 1)}
                spellCheck={false}
                value={command}
                onChange={(event) => set(i, event.target.value)}
              />
              {commands.length > 1 && (
                <IconButton
                  icon={Trash2}
                  label={t('edit.removeCommand', { n: i + 1 })}
                  onClick={() => onChange(commands.filter((_, at) => at !== i))}
                />
              )}
            </div>
          )}
        </Field>
      ))}
      <div className="row">
        <Button icon={Plus} onClick={() => onChange([...commands, ''])}>
          {t('edit.addCommand')}
        </Button>
      </div>
    </>
  );
}

function Tick({
  checked,
  onChange,
  children,
}: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: string;
}) {
  return (
    <label className="row">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
      />
      {children}
    </label>
  );
}

/** What it waits for, and what of that has passed. */
function Waiting({
  detail,
  found,
  kept,
  onChange,
}: {
  detail: JobDetail;
  found: Kept;
  kept: Kept;
  onChange: (kept: Kept) => void;
}) {
  const { t, language } = useLanguage();
  const passed = detail.after.length - found.after.length;
  if (!detail.after.length && found.startAt === null) return null;
  return (
    <div className="stack tight">
      {found.after.length > 0 && (
        <Tick
          checked={kept.after.length > 0}
          onChange={(on) => onChange({ ...kept, after: on ? found.after : [] })}
        >
          {waitsFor(found.after, detail.after_kind ?? 'ok', t)}
        </Tick>
      )}
      {found.startAt !== null && (
        <Tick
          checked={kept.startAt !== null}
          onChange={(on) => onChange({ ...kept, startAt: on ? found.startAt : null })}
        >
          {t('edit.startAt', { time: clock(found.startAt, language) })}
        </Tick>
      )}
      {passed > 0 && <p className="muted">{t('edit.passed', { count: passed })}</p>}
    </div>
  );
}

export function EditDialog({ detail, onClose }: { detail: JobDetail; onClose: () => void }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const [, go] = useLocation();
  const [draft, setDraft] = useState(() => draftOf(detail));
  const [chosen, setChosen] = useState<Kept | null>(null);
  const { data: found } = useQuery({
    queryKey: ['job', detail.job.id, 'kept'],
    queryFn: () => keptOf(detail),
    staleTime: 0,
  });
  const kept = chosen ?? found ?? NOTHING;
  // The same key for every try: a lost answer submits nothing twice.
  const [key, setKey] = useState(newKey);
  useEffect(() => setKey(newKey()), [draft, chosen]);
  const [sending, setSending] = useState(false);
  const wrong = check(draft);
  const set = (name: Line) => (value: string) => setDraft({ ...draft, [name]: value });
  const field = (name: Line, label: string, hint?: string) => (
    <TextField
      label={label}
      hint={hint}
      value={draft[name]}
      onChange={set(name)}
      error={wrong[name] ? t(`wrong.${wrong[name]}`) : null}
      spellCheck={false}
    />
  );
  const send = async () => {
    if (sending) return;
    setSending(true);
    try {
      const answer = await api.submit(submission(detail, draft, kept, key));
      const id = answer.ids[0] ?? 0;
      say(t('edit.done', { id }), { undo: () => api.kill([id]) });
      go(`/state/${id}`);
      onClose();
    } catch (error) {
      say((error as Error).message, { tone: 'bad' });
    }
    setSending(false);
  };
  const setCommands = (commands: Draft['commands']) => setDraft({ ...draft, commands });
  return (
    <Dialog open onClose={onClose} wide title={t('edit.title')} description={t('edit.text')}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Commands
          commands={draft.commands}
          error={wrong.commands ? t('wrong.empty') : null}
          onChange={setCommands}
        />
        <div className="form-grid">
          {field('name', t('col.name'))}
          {field('queue', t('col.queue'))}
          {field('gpus', t('fact.gpus'), '1, 2, 1..4')}
          {field('gpuMemory', t('fact.gpuMemory'), t('edit.memoryHint'))}
          {field('priority', t('col.priority'))}
          {field('retries', t('fact.retries'))}
          {field('time', t('fact.timeLimit'), '2h30m')}
          {field('cwd', t('fact.cwd'))}
          {field('log', t('fact.log'), t('edit.logHint'))}
        </div>
        {found && <Waiting detail={detail} found={found} kept={kept} onChange={setChosen} />}
        <footer className="dialog-foot">
          <Button onClick={onClose}>{t('common.cancel')}</Button>
          <Button
            type="submit"
            look="primary"
            disabled={Object.keys(wrong).length > 0 || !found || sending}
          >
            {t('edit.submit')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
