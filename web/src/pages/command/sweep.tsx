import { FileCode2, Plus, Send, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useGpus } from '../../api/data';
import { useLanguage, type Key } from '../../i18n';
import { recall, remember } from '../../lib/store';
import { Button, IconButton } from '../../ui/basic';
import { Field, TextField } from '../../ui/fields';
import { useOverlays } from '../../ui/overlay';
import { CheckedJobs } from './checked';
import { replaceJobFile } from './jobfile';
import {
  fieldAt,
  sweepFile,
  unfilled,
  unused,
  type Axis,
  type Sweep,
  type SweepField,
} from './sweepfile';
import { errorsOf, useUsualDirectory } from './usecheck';
import { useSubmit } from './usesubmit';

const FIRST: Sweep = {
  name: 'sweep',
  command: 'python train.py --lr {lr} --seed {seed}',
  axes: [{ name: 'lr', values: '0.1, 0.03, 0.01' }],
  seeds: '1..3',
  gpus: '1',
  gpuMemory: '8GiB',
  queue: '',
  retries: '0',
};

/** Where there are no cards a job that asks for one never runs. */
const WITHOUT_GPUS: Sweep = { ...FIRST, gpus: '0', gpuMemory: '' };

/** Null: nobody has built one yet. */
function load(): Sweep | null {
  try {
    const kept = JSON.parse(recall('berth.sweep', 'null')) as Partial<Sweep> | null;
    return kept && { ...FIRST, ...kept };
  } catch {
    return null;
  }
}

const LABELS = {
  name: 'col.name',
  command: 'sweep.command',
  seeds: 'sweep.seeds',
  gpus: 'fact.gpus',
  gpuMemory: 'fact.gpuMemory',
  queue: 'col.queue',
  retries: 'fact.retries',
} as const satisfies Record<Exclude<SweepField, number>, Key>;

export function SweepView({ onEdit }: { onEdit: () => void }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const { data: gpus } = useGpus();
  const usual = useUsualDirectory();
  const [own, setOwn] = useState(load);
  const sweep = own ?? (gpus?.length === 0 ? WITHOUT_GPUS : FIRST);
  const [chosen, setChosen] = useState('');
  const cwd = chosen || usual;
  const text = sweepFile(sweep);
  const { check, submit, disabled, label } = useSubmit({
    text,
    name: 'sweep.yaml',
    dialect: 'native',
    cwd,
  });
  const slips = unfilled(sweep);
  const idle = unused(sweep);
  const mistakes = check.state === 'wrong' ? errorsOf(check.checked?.problems ?? []) : [];
  const fieldOf = (line: number | null) => (line === null ? undefined : fieldAt(sweep, line));
  /** What the daemon says of a field; one of the lines of the file would say little here. */
  const wrong = (field: SweepField) =>
    mistakes.find(({ line }) => fieldOf(line) === field)?.message ?? null;
  const labelAt = (line: number): string | undefined => {
    const field = fieldOf(line);
    if (field === undefined) return undefined;
    return typeof field === 'number' ? sweep.axes[field]?.name : t(LABELS[field]);
  };

  const setSweep = (change: Partial<Sweep>) => {
    const next = { ...sweep, ...change };
    setOwn(next);
    remember('berth.sweep', JSON.stringify(next));
  };
  const setAxis = (at: number, change: Partial<Axis>) =>
    setSweep({ axes: sweep.axes.map((axis, i) => (i === at ? { ...axis, ...change } : axis)) });
  const edit = () => {
    const undo = replaceJobFile({ text, name: 'sweep.yaml', dialect: 'native', cwd });
    if (undo) say(t('sweep.replaced'), { undo });
    onEdit();
  };

  return (
    <div className="command-columns">
      <div className="stack">
        <Field
          label={t('sweep.command')}
          hint={
            slips.length
              ? t('sweep.unfilled', { names: slips.map((name) => `{${name}}`).join(', ') })
              : t('sweep.commandHint')
          }
          error={wrong('command')}
        >
          {(id, about) => (
            <textarea
              id={id}
              aria-describedby={about}
              aria-invalid={wrong('command') ? true : undefined}
              className="input mono"
              rows={3}
              spellCheck={false}
              value={sweep.command}
              onChange={(event) => setSweep({ command: event.target.value })}
            />
          )}
        </Field>
        <fieldset className="axes">
          <legend>{t('sweep.axes')}</legend>
          {sweep.axes.map((axis, i) => (
            <div key={i} className="axis">
              <TextField
                label={t('sweep.axis')}
                value={axis.name}
                onChange={(name) => setAxis(i, { name })}
                spellCheck={false}
              />
              <TextField
                label={t('sweep.values')}
                value={axis.values}
                onChange={(values) => setAxis(i, { values })}
                hint={idle.includes(i) && t('sweep.unused', { name: axis.name.trim() })}
                error={wrong(i)}
                spellCheck={false}
              />
              <IconButton
                icon={Trash2}
                label={t('sweep.removeAxis', { name: axis.name || i + 1 })}
                onClick={() => setSweep({ axes: sweep.axes.filter((_, at) => at !== i) })}
              />
            </div>
          ))}
          <div className="row wrap">
            <Button
              icon={Plus}
              onClick={() => setSweep({ axes: [...sweep.axes, { name: '', values: '' }] })}
            >
              {t('sweep.addAxis')}
            </Button>
            <span className="muted">{t('sweep.valuesHint')}</span>
          </div>
        </fieldset>
        <div className="form-grid">
          <TextField
            label={t('sweep.seeds')}
            hint={t(idle.includes('seeds') ? 'sweep.unused' : 'sweep.seedsHint', { name: 'seed' })}
            error={wrong('seeds')}
            value={sweep.seeds}
            onChange={(seeds) => setSweep({ seeds })}
          />
          <TextField
            label={t('col.name')}
            error={wrong('name')}
            value={sweep.name}
            onChange={(name) => setSweep({ name })}
          />
          <TextField
            label={t('fact.gpus')}
            error={wrong('gpus')}
            value={sweep.gpus}
            onChange={(gpus) => setSweep({ gpus })}
          />
          <TextField
            label={t('fact.gpuMemory')}
            hint={t('edit.memoryHint')}
            error={wrong('gpuMemory')}
            value={sweep.gpuMemory}
            onChange={(gpuMemory) => setSweep({ gpuMemory })}
          />
          <TextField
            label={t('col.queue')}
            error={wrong('queue')}
            value={sweep.queue}
            onChange={(queue) => setSweep({ queue })}
          />
          <TextField
            label={t('fact.retries')}
            error={wrong('retries')}
            value={sweep.retries}
            onChange={(retries) => setSweep({ retries })}
          />
          <TextField label={t('file.cwd')} value={cwd} onChange={setChosen} spellCheck={false} />
        </div>
        <div className="row wrap">
          <Button look="primary" icon={Send} disabled={disabled} onClick={submit}>
            {label}
          </Button>
          <Button icon={FileCode2} onClick={edit}>
            {t('sweep.edit')}
          </Button>
        </div>
        <details>
          <summary>{t('sweep.file')}</summary>
          <pre className="quote" tabIndex={0} aria-label={t('sweep.file')}>
            {text}
          </pre>
        </details>
      </div>
      <CheckedJobs check={check} labelAt={labelAt} />
    </div>
  );
}
