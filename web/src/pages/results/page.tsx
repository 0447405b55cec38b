import { useQuery } from '@tanstack/react-query';
import { ChartNoAxesCombined, Download } from 'lucide-react';
import { memo, useMemo, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { api, ranges } from '../../api/client';
import { useLive } from '../../api/data';
import type { Batch, Results } from '../../api/types';
import { useLanguage } from '../../i18n';
import { count } from '../../lib/format';
import { Button, Command, Empty, Panel, Skeleton } from '../../ui/basic';
import { Select } from '../../ui/fields';
import { csv, metricsOf, plotPoints, save } from './export';
import { Plot, shortNumber } from './plot';

/** What is shown at first, and with every click more; thousands of rows are slow to draw, and again and again. */
const ROWS = 200;
const MORE_ROWS = 1_000;

export const Table = memo(function Table({
  results,
  metrics,
}: {
  results: Results;
  metrics: string[];
}) {
  const { t, language } = useLanguage();
  const [most, setMost] = useState(ROWS);
  const { groups } = results;
  const shown = groups.slice(0, most);
  // The best is what one looks for.
  const best = groups.slice(most).filter((group) => group.best);
  return (
    <>
      <div className="scroll-x" tabIndex={0} role="region" aria-label={t('nav.results')}>
        <table className="plain">
          <thead>
            <tr>
              {results.by.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
              <th scope="col" className="num">
                {t('results.runs')}
              </th>
              {metrics.map((name) => (
                <th key={name} scope="col" className="num">
                  {name}
                </th>
              ))}
              <th scope="col">{t('results.jobs')}</th>
            </tr>
          </thead>
          <tbody>
            {[...shown, ...best].map((group, i) => (
              <tr key={i} className={group.best ? 'best' : ''}>
                {results.by.map((name) => (
                  <td key={name} className="mono">
                    {group.params[name] ?? '–'}
                  </td>
                ))}
                <td className="num nowrap">
                  {group.runs}
                  {group.failed > 0 && (
                    <span className="state-failed">
                      {' · '}
                      {t('results.failed', { count: group.failed })}
                    </span>
                  )}
                  {group.not_ended > 0 && (
                    <span className="muted">
                      {' '}
                      · {t('results.open', { count: group.not_ended })}
                    </span>
                  )}
                </td>
                {metrics.map((name) => {
                  const metric = group.metrics[name];
                  return (
                    <td key={name} className="num nowrap mono">
                      {metric?.mean === null || metric?.mean === undefined ? (
                        '–'
                      ) : (
                        <>
                          {shortNumber(metric.mean)}
                          {metric.std !== null && metric.n > 1 && (
                            <span className="muted"> ± {shortNumber(metric.std)}</span>
                          )}
                        </>
                      )}
                    </td>
                  );
                })}
                <td>
                  <span className="chips">
                    {group.jobs.slice(0, 6).map((job) =>
                      job.job ? (
                        <Link key={job.job} href={`/state/${job.job}`} className="chip mono">
                          {job.job}
                        </Link>
                      ) : null,
                    )}
                    {group.jobs.length > 6 && (
                      <span className="muted">+{group.jobs.length - 6}</span>
                    )}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {groups.length > most && (
        <div className="row wrap">
          <span className="muted">
            {t('results.someRows', {
              count: count(most, language),
              total: count(groups.length, language),
            })}
          </span>
          <Button onClick={() => setMost(most + MORE_ROWS)}>{t('batch.more')}</Button>
        </div>
      )}
    </>
  );
});

/** As many as the daemon reads for one table. */
const MOST_RUNS = 10_000;

/** Of a batch that is larger, the runs that were submitted first. */
async function resultsOf(batch: number, large: boolean): Promise<Results> {
  if (!large) return api.results({ batch });
  const { ids } = await api.ids({ batch });
  return api.results({ ids: ranges(ids) });
}

/** The newest batches, and the one that is asked for though it is older. */
export function shownBatches(newest: readonly Named[], asked: Named | undefined): readonly Named[] {
  return !asked || newest.some(({ id }) => id === asked.id) ? newest : [...newest, asked];
}
type Named = Pick<Batch, 'id' | 'name'>;

function NoResults() {
  const { t } = useLanguage();
  return (
    <Empty icon={ChartNoAxesCombined} title={t('results.noneTitle')}>
      <p>{t('results.noneText')}</p>
      <Command>berth report --metric acc=0.93</Command>
    </Empty>
  );
}

export default function ResultsPage() {
  const { t, language } = useLanguage();
  const { link } = useLive();
  const search = useSearch();
  const [, go] = useLocation();
  const asked = new URLSearchParams(search).get('batch') ?? '';
  const { data: batches } = useQuery({ queryKey: ['batches'], queryFn: () => api.batches() });
  const batch = asked || String(batches?.batches[0]?.id ?? '');
  const { data: one, error: missing } = useQuery({
    queryKey: ['batches', batch],
    queryFn: () => api.batch(Number(batch)),
    enabled: batch !== '',
  });
  const size = one?.jobs ?? 0;
  const {
    data,
    error: unread,
    isPending,
  } = useQuery({
    queryKey: ['results', batch, size > MOST_RUNS],
    queryFn: () => resultsOf(Number(batch), size > MOST_RUNS),
    enabled: one !== undefined,
    refetchInterval: 10_000,
  });
  const error = missing ?? unread;
  const metrics = useMemo(() => (data ? metricsOf(data) : []), [data]);
  const [metric, setMetric] = useState('');
  const [parameter, setParameter] = useState('');
  const shownMetric = metrics.includes(metric) ? metric : (metrics[0] ?? '');
  const shownParameter = data?.by.includes(parameter) ? parameter : (data?.by[0] ?? '');
  const lines = useMemo(
    () =>
      data && shownMetric && shownParameter ? plotPoints(data, shownMetric, shownParameter) : null,
    [data, shownMetric, shownParameter],
  );
  return (
    <>
      <header className="page-head">
        <h1>{t('nav.results')}</h1>
        {batches && batches.batches.length > 0 && (
          <Select
            hidden
            label={t('col.batch')}
            value={batch}
            options={shownBatches(batches.batches, one ?? { id: Number(batch), name: '' }).map(
              ({ id, name }) => [String(id), `${id} · ${name || t('batch.unnamed', { id })}`],
            )}
            onChange={(id) => go(`/results?batch=${id}`, { replace: true })}
          />
        )}
        {data && data.groups.length > 0 && (
          <div className="row">
            <Button
              icon={Download}
              onClick={() => save(`results-${batch}.csv`, 'text/csv', csv(data))}
            >
              CSV
            </Button>
            <Button
              icon={Download}
              onClick={() =>
                save(`results-${batch}.json`, 'application/json', JSON.stringify(data, null, 2))
              }
            >
              JSON
            </Button>
          </div>
        )}
      </header>
      {batches?.batches.length === 0 && <NoResults />}
      {batch && isPending && !error && link !== 'gone' && <Skeleton rows={6} />}
      {error && link !== 'gone' && <p className="error-text">{error.message}</p>}
      {data && size > MOST_RUNS && (
        <p className="muted lead">
          {t('results.first', { count: count(MOST_RUNS, language), total: count(size, language) })}
        </p>
      )}
      {data?.warnings.map((warning) => (
        <p key={warning} className="muted">
          {warning}
        </p>
      ))}
      {data && metrics.length === 0 && <NoResults />}
      {data && metrics.length > 0 && (
        <div className="stack">
          {lines && (
            <Panel
              title={t('results.plot')}
              id="plot"
              actions={
                <>
                  <Select
                    hidden
                    label={t('results.metric')}
                    value={shownMetric}
                    options={metrics.map((name) => [name, name])}
                    onChange={setMetric}
                  />
                  <Select
                    hidden
                    label={t('results.parameter')}
                    value={shownParameter}
                    options={data.by.map((name) => [name, name])}
                    onChange={setParameter}
                  />
                </>
              }
            >
              <Plot lines={lines} metric={shownMetric} parameter={shownParameter} />
            </Panel>
          )}
          <Panel>
            <Table key={batch} results={data} metrics={metrics} />
          </Panel>
        </div>
      )}
    </>
  );
}
