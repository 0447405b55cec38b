// Command files: configurations, their queues, and the processes of each queue.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { FileText, Play, Plus, Save, ScrollText, Square, Trash2 } from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { Link } from 'wouter';
import { configs, type Mode } from '../../api/client';
import { useMayChange } from '../../api/data';
import { useGuard } from '../../api/guard';
import type {
  CommandProcess,
  CommandQueue,
  ConfigFile,
  JobState,
  Problem,
  SchedulerProcess,
  SchedulerState,
} from '../../api/types';
import { useLanguage } from '../../i18n';
import { later } from '../../lib/later';
import { useRemembered } from '../../lib/store';
import { Button, Empty, IconButton, Panel, Skeleton, StateBadge } from '../../ui/basic';
import { Segmented } from '../../ui/fields';
import { Menu, useOverlays } from '../../ui/overlay';
import { BindDialog, BoundLog, useBinding } from './binding';
import { CheckedJobs } from './checked';
import { EXAMPLES } from './samples';
import { errorsOf, useCheck } from './usecheck';
import { IN_STEP, useConfigText } from './usetext';

const Editor = later(() => import('../../ui/editor'));

function directoryOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf('/')));
}

const NONE: readonly Problem[] = [];

/** A new file explains itself in comments; there is nothing in it to be wrong. */
const hasTask = (text: string): boolean =>
  text.split('\n').some((line) => line.trim() && !line.trim().startsWith('#'));

const STATES: Record<SchedulerProcess['status'], JobState> = {
  pending: 'queued',
  running: 'running',
  completed: 'succeeded',
  failed: 'failed',
};

/** Of a file that is not there the daemon knows nothing, and browsers tell of such an answer as an error. */
function useSchedulerState(
  mode: Mode,
  { index, exists }: Pick<ConfigFile, 'index' | 'exists'>,
): SchedulerState | undefined {
  const { data } = useQuery({
    queryKey: ['scheduler', mode, index],
    queryFn: () => configs.state(mode, index),
    refetchInterval: 5_000,
    enabled: exists,
  });
  return data;
}

function Process({
  mode,
  index,
  queue,
  process,
  number,
}: {
  mode: Mode;
  index: number;
  queue: number;
  process: CommandProcess;
  number: number;
}) {
  const { t } = useLanguage();
  const guard = useGuard();
  const place = { mode, config_index: index, queue_id: queue, process_index: number };
  const binding = useBinding(place);
  const [open, setOpen] = useState<'bind' | 'log' | null>(null);
  const name = process.commands.join(' && ');
  const state = useSchedulerState(mode, { index, exists: true });
  const now = state?.queues[String(queue)]?.processes.find((one) => one.index === number);
  return (
    <li className="task">
      <code title={name}>{name}</code>
      <span className="muted nowrap">
        {process.gpu_count ?? 1} × {process.memory} GiB
      </span>
      {now && (
        <Link href={`/state/${now.job_id}`}>
          <StateBadge state={STATES[now.status]} />
        </Link>
      )}
      {binding && (
        <Button look="quiet" icon={ScrollText} onClick={() => setOpen('log')}>
          {t('config.bound')}
        </Button>
      )}
      <Button
        {...guard}
        look="quiet"
        onClick={() => setOpen('bind')}
        aria-label={`${t('config.bind')}: ${name.slice(0, 80)}`}
      >
        {t('config.bind')}
      </Button>
      {open === 'bind' && (
        <BindDialog place={place} path={binding?.log_path ?? ''} onClose={() => setOpen(null)} />
      )}
      {open === 'log' && <BoundLog place={place} onClose={() => setOpen(null)} />}
    </li>
  );
}

function Tree({ mode, index, queues }: { mode: Mode; index: number; queues: CommandQueue[] }) {
  const { t } = useLanguage();
  return (
    <div className="stack">
      {queues.map((queue) => (
        <section key={queue.id} className="queue-block">
          <h3>
            {t('config.queue', { id: queue.id })}
            <span className="muted">{queue.processes.length}</span>
          </h3>
          <ul>
            {queue.processes.map((process, number) => (
              <Process
                key={number}
                number={number}
                mode={mode}
                index={index}
                queue={queue.id}
                process={process}
              />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function Progress({ mode, config }: { mode: Mode; config: ConfigFile }) {
  const { t } = useLanguage();
  const data = useSchedulerState(mode, config);
  if (!data?.batch) return <span className="muted">{t('config.idle')}</span>;
  return (
    <span className="row">
      {data.running && <span className="badge badge-running">{t('config.running')}</span>}
      <Link href={`/state?batch=${data.batch}`}>
        {t('config.progress', {
          done: data.completed_tasks,
          total: data.total_tasks,
          running: data.running_tasks,
        })}
      </Link>
    </span>
  );
}

/** What is here and what is in the file, where both were changed. */
function Conflict({
  name,
  theirs,
  onTheirs,
  onMine,
}: {
  name: string;
  theirs: string;
  onTheirs: () => void;
  onMine: () => void;
}) {
  const { t } = useLanguage();
  const guard = useGuard();
  return (
    <div className="conflict" role="alert">
      <p>
        <strong>{t('config.conflict', { name })}</strong> {t('config.conflictText', { name })}
      </p>
      <details>
        <summary>{t('config.theirs')}</summary>
        <pre className="quote" tabIndex={0} aria-label={t('config.theirs')}>
          {theirs}
        </pre>
      </details>
      <div className="row wrap">
        <Button onClick={onTheirs}>{t('config.takeTheirs')}</Button>
        <Button {...guard} look="danger" onClick={onMine}>
          {t('config.overwrite')}
        </Button>
      </div>
    </div>
  );
}

function Config({ mode, config, onGone }: { mode: Mode; config: ConfigFile; onGone: () => void }) {
  const { t } = useLanguage();
  const { confirm, say } = useOverlays();
  const mayChange = useMayChange();
  const client = useQueryClient();
  const mine = useConfigText(mode, config.index);
  const { file, error, text, changed, conflict, write } = mine;
  const guard = useGuard();
  const scheduled = useSchedulerState(mode, config);
  const name = config.file_name;
  const begun = hasTask(text);
  const check = useCheck({
    text: begun ? text : '',
    name,
    dialect: 'commands',
    cwd: directoryOf(config.file_path),
  });
  const problems = check.checked?.problems ?? NONE;
  const fresh = async () => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ['configs', mode] }),
      client.invalidateQueries({ queryKey: ['config', mode, config.index] }),
      client.invalidateQueries({ queryKey: ['scheduler'] }),
    ]);
  };
  const act = async (what: () => Promise<unknown>, done: string): Promise<boolean> => {
    try {
      await what();
      await fresh();
      say(done);
      return true;
    } catch (failure) {
      say((failure as Error).message, { tone: 'bad' });
      return false;
    }
  };
  const save = async () => {
    if (!changed) return true;
    if (mine.saving) return false;
    if (!conflict) return act(mine.save, t('config.saved', { name }));
    say(t('config.conflict', { name }), { tone: 'bad' });
    return false;
  };
  const takeTheirs = () => say(t('config.tookTheirs', { name }), { undo: mine.discard() });
  const start = async () => {
    if (!(await save())) return;
    await act(() => configs.start(mode, config.index), t('config.started', { name }));
  };
  const stop = async (kill: boolean) => {
    const yes = await confirm({
      title: t('config.stopTitle', { name }),
      text: t(kill ? 'config.killText' : 'config.stopText'),
      action: t(kill ? 'config.stopKill' : 'config.stop'),
      danger: kill,
    });
    if (yes) await act(() => configs.stop(mode, config.index, kill), t('config.stopped', { name }));
  };
  const remove = async () => {
    const yes = await confirm({
      title: t('config.deleteTitle', { name }),
      text: t('config.deleteText'),
      action: t('common.delete'),
      danger: true,
    });
    if (
      !yes ||
      !(await act(() => configs.remove(mode, config.index), t('config.deleted', { name })))
    )
      return;
    mine.discard();
    onGone();
  };
  return (
    <div className="stack">
      <Panel
        title={
          <span className="row">
            {name}
            {changed && <span className="badge badge-paused">{t('config.unsaved')}</span>}
          </span>
        }
        id="config"
        actions={
          <>
            <Progress mode={mode} config={config} />
            <Button
              icon={Save}
              disabled={!changed || conflict || mine.saving}
              {...guard}
              onClick={() => void save()}
            >
              {t('common.save')}
            </Button>
            <Button
              look="primary"
              icon={Play}
              disabled={errorsOf(problems).length > 0 || !begun || scheduled?.running}
              {...guard}
              onClick={() => void start()}
            >
              {t('config.start')}
            </Button>
            <Menu
              trigger={
                <Button icon={Square} disabled={!scheduled?.running} {...guard}>
                  {t('config.stop')}
                </Button>
              }
              items={[
                { label: t('config.stop'), onSelect: () => void stop(false) },
                { label: t('config.stopKill'), danger: true, onSelect: () => void stop(true) },
              ]}
            />
            {config.index > 0 && ( // the first one stays
              <IconButton
                icon={Trash2}
                label={t('config.delete', { name })}
                {...guard}
                onClick={() => void remove()}
              />
            )}
          </>
        }
      >
        {error && <p className="error-text">{error.message}</p>}
        {!file && !error && <Skeleton rows={6} />}
        {file && conflict && (
          <Conflict
            name={name}
            theirs={file.text ?? ''}
            onTheirs={takeTheirs}
            onMine={() => void act(mine.overwrite, t('config.saved', { name }))}
          />
        )}
        {file && !begun && mayChange && (
          <div className="row wrap">
            <span className="muted">{t('config.empty')}</span>
            <Button icon={FileText} onClick={() => write(EXAMPLES[mode])}>
              {t('config.example')}
            </Button>
          </div>
        )}
        {file && (
          <div className="editor-frame low">
            <Suspense fallback={<Skeleton rows={6} />}>
              <Editor
                key={`${mode}-${config.index}`}
                label={t('config.textOf', { name })}
                value={text}
                dialect="commands"
                problems={problems}
                readOnly={!mayChange}
                onChange={write}
                onSubmit={() => void save()}
              />
            </Suspense>
          </div>
        )}
      </Panel>
      {file && file.queues.length > 0 && (
        <Panel title={t('config.tree')} id="tree">
          <Tree mode={mode} index={config.index} queues={file.queues} />
        </Panel>
      )}
      {mayChange && <CheckedJobs check={check} />}
    </div>
  );
}

export function ConfigsView() {
  const { t } = useLanguage();
  const { say } = useOverlays();
  const guard = useGuard();
  const client = useQueryClient();
  const [mode, setMode] = useRemembered<Mode>('berth.config.mode', 'single');
  const [chosen, setChosen] = useState<number | null>(null);
  const { data, error, isPending } = useQuery({
    queryKey: ['configs', mode],
    queryFn: () => configs.all(mode),
    refetchInterval: IN_STEP,
  });
  useEffect(() => setChosen(null), [mode]);
  const list = data?.configs ?? [];
  const shown = list.find((config) => config.index === chosen) ?? list[0];
  const create = async () => {
    try {
      const answer = await configs.create(mode);
      // The first file is shown, empty, before there is one: what is known of it is old now.
      await Promise.all([
        client.invalidateQueries({ queryKey: ['configs', mode] }),
        client.invalidateQueries({ queryKey: ['config', mode] }),
      ]);
      setChosen(answer.config.index);
    } catch (failure) {
      say((failure as Error).message, { tone: 'bad' });
    }
  };
  const newButton = (
    <Button {...guard} icon={Plus} onClick={() => void create()}>
      {t('config.new')}
    </Button>
  );
  return (
    <div className="config-columns">
      <div className="stack">
        <Segmented<Mode>
          label={t('config.mode')}
          value={mode}
          onChange={setMode}
          options={[
            ['single', t('config.single')],
            ['multi', t('config.multi')],
          ]}
        />
        {isPending && <Skeleton rows={3} />}
        {error && <p className="error-text">{error.message}</p>}
        <ul className="config-list">
          {list.map((config) => (
            <li key={config.index}>
              <button
                type="button"
                className="config"
                aria-current={config.index === shown?.index ? 'true' : undefined}
                onClick={() => setChosen(config.index)}
              >
                <strong>{t('config.name', { n: config.index })}</strong>
                <span className="muted">
                  {config.file_name} ·{' '}
                  {t('config.queues', {
                    queues: config.queues.length,
                    tasks: config.queues.reduce((sum, queue) => sum + queue.processes.length, 0),
                  })}
                </span>
              </button>
            </li>
          ))}
        </ul>
        {list.length > 0 && newButton}
      </div>
      {shown ? (
        <Config
          key={`${mode}-${shown.index}`}
          mode={mode}
          config={shown}
          onGone={() => setChosen(null)}
        />
      ) : (
        data && (
          <Empty icon={FileText} title={t('config.none')} actions={newButton}>
            <p>{t('config.noneText')}</p>
          </Empty>
        )
      )}
    </div>
  );
}
