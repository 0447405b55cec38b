// What a text would make: its jobs, or its mistakes.

import { CircleCheck, CircleX, TriangleAlert } from 'lucide-react';
import { useScope } from '../../api/data';
import type { Problem } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes, count } from '../../lib/format';
import { Panel, Skeleton } from '../../ui/basic';
import { errorsOf, type Check } from './usecheck';

const SHOWN = 100;

function Problems({ problems }: { problems: readonly Problem[] }) {
  const { t } = useLanguage();
  if (!problems.length) return null;
  return (
    <ul className="problems">
      {problems.map((problem, i) => (
        <li key={i} className={problem.severity}>
          {problem.severity === 'error' ? (
            <CircleX size={14} aria-hidden />
          ) : (
            <TriangleAlert size={14} aria-hidden />
          )}
          <span>
            {problem.line !== null && <strong>{t('check.line', { line: problem.line })} </strong>}
            {problem.message}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Where there is no answer: why not. */
function Unchecked({ state }: Pick<Check, 'state'>) {
  const { t } = useLanguage();
  const scope = useScope();
  if (state === 'pending' || !scope) return <Skeleton rows={3} />;
  if (state !== 'nothing' && state !== 'nowhere') return null;
  return <p className="muted">{t(scope === 'full' ? `check.${state}` : 'check.readonly')}</p>;
}

export function CheckedJobs({ check: { checked, error, state } }: { check: Check }) {
  const { t, language } = useLanguage();
  const errors = errorsOf(checked?.problems ?? []);
  return (
    <Panel title={t('check.title')} id="check" className="check">
      <div aria-live="polite">
        {error && <p className="error-text">{error.message}</p>}
        {!checked && <Unchecked state={state} />}
        {checked && !errors.length && (
          <p className="row state-succeeded">
            <CircleCheck size={15} aria-hidden />
            {t('check.ok', {
              count: count(checked.total, language),
              dialect: t(`dialect.${checked.dialect}`),
            })}
          </p>
        )}
        {checked && <Problems problems={checked.problems} />}
      </div>
      {checked && checked.jobs.length > 0 && (
        <div className="scroll-x" tabIndex={0} role="group" aria-labelledby="check">
          <table className="plain tight">
            <thead>
              <tr>
                <th scope="col">{t('col.name')}</th>
                <th scope="col">{t('col.queue')}</th>
                <th scope="col">{t('col.gpu')}</th>
                <th scope="col">{t('col.command')}</th>
              </tr>
            </thead>
            <tbody>
              {checked.jobs.slice(0, SHOWN).map((job, i) => (
                <tr key={i}>
                  <th scope="row" className="nowrap">
                    {job.name}
                  </th>
                  <td className="nowrap">{job.queue}</td>
                  <td className="nowrap">
                    {job.gpus === job.gpus_max ? job.gpus : `${job.gpus}–${job.gpus_max}`}
                    {job.gpus > 0 &&
                      ` × ${job.gpu_memory === null ? t('gpu.wholeShort') : bytes(job.gpu_memory)}`}
                  </td>
                  <td className="mono command-cell" title={job.command.slice(0, 2000)}>
                    {job.command.slice(0, 200)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {checked && checked.total > SHOWN && (
        <p className="muted">
          {t('check.more', { count: count(checked.total - SHOWN, language) })}
        </p>
      )}
    </Panel>
  );
}
