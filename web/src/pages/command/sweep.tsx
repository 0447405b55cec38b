import { FileCode2, Plus, Send, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useLanguage } from '../../i18n';
import { recall, remember } from '../../lib/store';
import { Button, IconButton } from '../../ui/basic';
import { Field, TextField } from '../../ui/fields';
import { useOverlays } from '../../ui/overlay';
import { CheckedJobs } from './checked';
import { replaceJobFile } from './jobfile';
import { sweepFile, unfilled, type Axis, type Sweep } from './sweepfile';
import { useUsualDirectory } from './usecheck';
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

function load(): Sweep {
  try {
    return { ...FIRST, ...(JSON.parse(recall('berth.sweep', '{}')) as Partial<Sweep>) };
  } catch {
    return FIRST;
  }
}

export function SweepView({ onEdit }: { onEdit: () => void }) {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const usual = useUsualDirectory();
  const [sweep, setSweepState] = useState(load);
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

  const setSweep = (change: Partial<Sweep>) => {
    const next = { ...sweep, ...change };
    setSweepState(next);
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
        >
          {(id, about) => (
            <textarea
              id={id}
              aria-describedby={about}
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
            hint={t('sweep.seedsHint')}
            value={sweep.seeds}
            onChange={(seeds) => setSweep({ seeds })}
          />
          <TextField
            label={t('col.name')}
            value={sweep.name}
            onChange={(name) => setSweep({ name })}
          />
          <TextField
            label={t('fact.gpus')}
            value={sweep.gpus}
            onChange={(gpus) => setSweep({ gpus })}
          />
          <TextField
            label={t('fact.gpuMemory')}
            hint={t('edit.memoryHint')}
            value={sweep.gpuMemory}
            onChange={(gpuMemory) => setSweep({ gpuMemory })}
          />
          <TextField
            label={t('col.queue')}
            value={sweep.queue}
            onChange={(queue) => setSweep({ queue })}
          />
          <TextField
            label={t('fact.retries')}
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
      <CheckedJobs check={check} />
    </div>
  );
}
