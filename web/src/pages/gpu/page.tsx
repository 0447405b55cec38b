import { Cpu } from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import { useGpus, useLive, useStatus } from '../../api/data';
import { seed } from '../../api/samples';
import { JOB_STATES, type Gpu } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes, count } from '../../lib/format';
import { later } from '../../lib/later';
import { driverText, said } from '../../lib/said';
import { useNow } from '../../lib/now';
import { Command, Empty, Skeleton, StateIcon } from '../../ui/basic';
import { GpuCard, SHOWN, markOf } from './card';
import { splitMemory } from './memory';

const HistoryDialog = later(() => import('./history'));

const SEED_POINTS = 90;

/** What jobs may have: a card that is out of use, or left to others, is free for none of them. */
export function freeOf(gpus: readonly Gpu[]): { cards: number; memory: number } {
  return {
    cards: gpus.filter((gpu) => markOf(gpu) === 'free').length,
    memory: gpus
      .filter((gpu) => !gpu.trouble && !gpu.reserved)
      .reduce((sum, gpu) => sum + (splitMemory(gpu)?.free ?? 0), 0),
  };
}

function Totals({ gpus }: { gpus: Gpu[] }) {
  const { t, language } = useLanguage();
  const { data: status } = useStatus();
  const free = freeOf(gpus);
  const busy = gpus.map((gpu) => gpu.utilization).filter((value) => value !== null);
  const mean = busy.length ? Math.round(busy.reduce((a, b) => a + b, 0) / busy.length) : null;
  return (
    <div className="totals">
      <div>
        <span className="total">
          {free.cards}
          <small> / {gpus.length}</small>
        </span>
        <span className="muted">{t('gpu.freeCards')}</span>
      </div>
      <div>
        <span className="total">{bytes(free.memory)}</span>
        <span className="muted">{t('gpu.freeMemory')}</span>
      </div>
      <div>
        <span className="total">{mean === null ? '–' : `${mean} %`}</span>
        <span className="muted">{t('gpu.meanUse')}</span>
      </div>
      <ul className="counts">
        {JOB_STATES.filter((state) => (status?.counts[state] ?? 0) > 0).map((state) => (
          <li key={state}>
            <Link href={`/state?state=${state}`} className={`count-chip state-${state}`}>
              <StateIcon state={state} />
              {t(`state.${state}`)} <strong>{count(status?.counts[state] ?? 0, language)}</strong>
            </Link>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function GpuPage() {
  const { t } = useLanguage();
  const { data: gpus, error } = useGpus();
  const { data: status } = useStatus();
  const { link } = useLive();
  const [history, setHistory] = useState<Gpu | null>(null);
  // Where nothing is heard the charts stand still.
  const now = useNow(link === 'live' || link === 'polling');
  const uuids = gpus?.map((gpu) => gpu.uuid).join() ?? '';

  useEffect(() => {
    const now = Date.now();
    for (const uuid of uuids.split(',').filter(Boolean)) {
      void api
        .gpuHistory(uuid, now - SHOWN, now, SEED_POINTS)
        .then((answer) => seed(uuid, answer.points))
        .catch(() => undefined); // The charts then begin with this page.
    }
  }, [uuids]);

  return (
    <>
      <header className="page-head">
        <h1>{t('nav.gpu')}</h1>
        {status && <span className="muted">{driverText(status.probe, t)}</span>}
      </header>
      {!gpus && !error && <Skeleton rows={4} tall />}
      {!gpus && error && link !== 'gone' && <p className="error-text">{error.message}</p>}
      {gpus?.length === 0 && (
        <Empty icon={Cpu} title={t('gpu.noneTitle')}>
          <p>{status?.probe.error ? said(status.probe.error, t) : t('gpu.noneText')}</p>
          <Command>berth add --gpus 0 -- python train.py</Command>
          <p>{t('gpu.noneTry')}</p>
          <Command>BERTH_DIR=/tmp/try BERTH_GPUS=sim:4x24GiB berth ui</Command>
        </Empty>
      )}
      {gpus && gpus.length > 0 && (
        <>
          <Totals gpus={gpus} />
          <div className="gpu-grid">
            {gpus.map((gpu) => (
              <GpuCard
                key={gpu.uuid}
                gpu={gpu}
                now={now}
                silent={Boolean(status?.probe.error)}
                onHistory={() => setHistory(gpu)}
              />
            ))}
          </div>
        </>
      )}
      {history && (
        <Suspense fallback={null}>
          <HistoryDialog gpu={history} onClose={() => setHistory(null)} />
        </Suspense>
      )}
    </>
  );
}
