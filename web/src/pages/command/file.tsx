// A job file of any dialect, written here and submitted as it stands.

import { Send } from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { ApiError, api } from '../../api/client';
import { useMayChange } from '../../api/data';
import type { Dialect } from '../../api/types';
import { useLanguage } from '../../i18n';
import { newKey } from '../../lib/key';
import { later } from '../../lib/later';
import { useRemembered } from '../../lib/store';
import { Button, Skeleton } from '../../ui/basic';
import { Select, TextField } from '../../ui/fields';
import { useOverlays } from '../../ui/overlay';
import { CheckedJobs, errorsOf } from './checked';
import { SAMPLES } from './samples';
import { useCheck, useUsualDirectory } from './usecheck';

const Editor = later(() => import('../../ui/editor'));

const DIALECTS: readonly Dialect[] = ['native', 'commands', 'fedwhat', 'script', 'gpu_manager'];

export function FileView() {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const [, go] = useLocation();
  const mayChange = useMayChange();
  const usual = useUsualDirectory();
  const [text, setText] = useRemembered<string>('berth.file.text', SAMPLES.native.text);
  const [dialect, setDialect] = useRemembered<Dialect>('berth.file.dialect', 'native');
  const [name, setName] = useRemembered<string>('berth.file.name', SAMPLES.native.name);
  const [chosen, setChosen] = useRemembered<string>('berth.file.cwd', '');
  const [key, setKey] = useState(newKey);
  const [sending, setSending] = useState(false);
  const cwd = chosen || usual;
  const check = useCheck({ text, name, dialect, cwd });
  const problems = check.data?.problems ?? [];
  const ready =
    mayChange && check.data !== undefined && !errorsOf(problems).length && check.data.total > 0;
  useEffect(() => setKey(newKey()), [text, name, dialect, cwd]);

  const change = (next: Dialect) => {
    // A text nobody has touched gives way to a sample of the other dialect.
    if (Object.values(SAMPLES).some((sample) => sample.text === text) || !text.trim()) {
      setText(SAMPLES[next].text);
      setName(SAMPLES[next].name);
    }
    setDialect(next);
  };
  const send = async () => {
    if (!ready || sending) return;
    setSending(true);
    try {
      const answer = await api.submitFile({ text, name, dialect, cwd, key });
      const skipped = answer.skipped.length;
      const [first, last = first] = answer.ids;
      if (first === undefined || last === undefined) {
        say(t('file.nothingLeft', { skipped }));
        setSending(false);
        return;
      }
      const count = last - first + 1;
      say(skipped ? t('file.skipped', { count, skipped }) : t('file.done', { count }), {
        undo: () => void api.kill(Array.from({ length: count }, (_, i) => first + i)),
      });
      go(answer.batch ? `/state?batch=${answer.batch}` : '/state');
    } catch (error) {
      const told = error instanceof ApiError ? error.message : String(error);
      say(told, { tone: 'bad' });
    }
    setSending(false);
  };

  return (
    <div className="command-columns">
      <div className="stack">
        <div className="form-grid">
          <Select
            label={t('file.dialect')}
            value={dialect}
            options={DIALECTS.map((one) => [one, t(`dialect.${one}`)])}
            onChange={(value) => change(value as Dialect)}
          />
          <TextField label={t('file.name')} value={name} onChange={setName} spellCheck={false} />
          <TextField
            label={t('file.cwd')}
            value={cwd}
            onChange={setChosen}
            spellCheck={false}
            error={cwd.startsWith('/') ? null : t('wrong.path')}
          />
        </div>
        <div className="editor-frame">
          <Suspense fallback={<Skeleton rows={10} />}>
            <Editor
              label={t('file.text')}
              value={text}
              dialect={dialect}
              problems={problems}
              readOnly={!mayChange}
              onChange={setText}
              onSubmit={() => void send()}
            />
          </Suspense>
        </div>
        <div className="row wrap">
          <Button
            look="primary"
            icon={Send}
            disabled={!ready || sending}
            onClick={() => void send()}
          >
            {check.data && ready
              ? t('file.submit', { count: check.data.total })
              : t('file.submitNone')}
          </Button>
          <span className="muted">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </div>
      </div>
      <CheckedJobs checked={check.data} error={check.error} pending={check.isFetching} />
    </div>
  );
}
