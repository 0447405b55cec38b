// A job file of any dialect, written here and submitted as it stands.

import { Send } from 'lucide-react';
import { Suspense } from 'react';
import { useMayChange } from '../../api/data';
import type { Dialect, Problem } from '../../api/types';
import { useLanguage } from '../../i18n';
import { later } from '../../lib/later';
import { Button, Skeleton } from '../../ui/basic';
import { Select, TextField } from '../../ui/fields';
import { CheckedJobs } from './checked';
import { untouched, useJobFile } from './jobfile';
import { SAMPLES } from './samples';
import { useUsualDirectory } from './usecheck';
import { useSubmit } from './usesubmit';

const Editor = later(() => import('../../ui/editor'));

const DIALECTS: readonly Dialect[] = ['native', 'commands', 'fedwhat', 'script', 'gpu_manager'];
const NONE: readonly Problem[] = [];

export function FileView() {
  const { t } = useLanguage();
  const mayChange = useMayChange();
  const usual = useUsualDirectory();
  const [file, setFile] = useJobFile();
  const { text, name, dialect } = file;
  const cwd = file.cwd || usual;
  const { check, submit, waiting, disabled, label } = useSubmit({ text, name, dialect, cwd });
  const change = (next: Dialect) =>
    setFile({ ...(untouched(text) ? SAMPLES[next] : {}), dialect: next });

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
          <TextField
            label={t('file.name')}
            value={name}
            onChange={(next) => setFile({ name: next })}
            spellCheck={false}
          />
          <TextField
            label={t('file.cwd')}
            value={cwd}
            onChange={(next) => setFile({ cwd: next })}
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
              problems={check.checked?.problems ?? NONE}
              readOnly={!mayChange}
              onChange={(next) => setFile({ text: next })}
              onSubmit={submit}
            />
          </Suspense>
        </div>
        <div className="row wrap">
          <Button look="primary" icon={Send} disabled={disabled} onClick={submit}>
            {label}
          </Button>
          <span className="muted">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
          <span className="muted" role="status">
            {waiting && t('file.waiting')}
          </span>
        </div>
      </div>
      <CheckedJobs check={check} />
    </div>
  );
}
