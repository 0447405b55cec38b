// What a text would make: its jobs, or its mistakes.

import { CircleCheck, CircleX, TriangleAlert } from 'lucide-react';
import { useScope } from '../../api/data';
import type { Problem } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes, count } from '../../lib/format';
import { Panel, Skeleton } from '../../ui/basic';
import { telling } from './telling';
import { errorsOf, type Check } from './usecheck';

const SHOWN = 100;

/** What a line of the text is called where that is not on the page. */
type LabelAt = (line: number) => string | undefined;

function Problems({ problems, labelAt }: { problems: readonly Problem[]; labelAt: LabelAt }) {
  const { t } = useLanguage();
  if (!problems.length) return null;
  const place = (line: number) => {
    const field = labelAt(line);
    return field === undefined ? t('check.line', { line }) : t('check.field', { field });
  };
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
            {problem.line !== null && <strong>{place(problem.line)} </strong>}
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

/** The text itself is on the page. */
const BY_NUMBER: LabelAt = () => undefined;

export function CheckedJobs({
  check: { checked, error, state },
  labelAt = BY_NUMBER,
}: {
  check: Check;
  labelAt?: LabelAt;
}) {
  const { t, language } = useLanguage();
  const errors = errorsOf(checked?.problems ?? []);
  const jobs = checked?.jobs.slice(0, SHOWN) ?? [];
  const commands = telling(jobs.map((job) => job.command));
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
        {checked && <Problems problems={checked.problems} labelAt={labelAt} />}
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
              {jobs.map((job, i) => (
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
                    {commands[i]}
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
