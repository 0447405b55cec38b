import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { api } from '../../api/client';
import type { Gpu } from '../../api/types';
import { useLanguage } from '../../i18n';
import { bytes } from '../../lib/format';
import { Skeleton } from '../../ui/basic';
import Chart from '../../ui/chart';
import { Segmented } from '../../ui/fields';
import { Dialog } from '../../ui/overlay';

const HOUR = 3_600_000;
const SPANS = { '1h': HOUR, '6h': 6 * HOUR, '1d': 24 * HOUR, '7d': 168 * HOUR } as const;
type Span = keyof typeof SPANS;
const POINTS = 400;

const percent = (value: number) => `${Math.round(value)} %`;
const watts = (value: number) => `${Math.round(value)} W`;
const celsius = (value: number) => `${Math.round(value)} °C`;

export default function HistoryDialog({ gpu, onClose }: { gpu: Gpu; onClose: () => void }) {
  const { t } = useLanguage();
  const [span, setSpan] = useState<Span>('1h');
  const { data, error } = useQuery({
    queryKey: ['gpuHistory', gpu.uuid, span],
    queryFn: () => {
      const now = Date.now();
      const from = now - SPANS[span];
      return api
        .gpuHistory(gpu.uuid, from, now, POINTS)
        .then(({ points }) => ({ points, asked: [from, now] as const }));
    },
    refetchInterval: 10_000,
  });
  const { points, asked } = data ?? {};
  const charts = useMemo(() => {
    if (!points) return null;
    return {
      times: points.map((point) => point.t),
      memory: [
        {
          label: t('gpu.memory'),
          colour: '--own',
          fill: true,
          values: points.map((point) => point.memory_used),
        },
      ],
      use: [
        {
          label: t('gpu.utilization'),
          colour: '--running',
          fill: true,
          values: points.map((point) => point.utilization),
        },
      ],
      heat: [
        {
          label: t('gpu.temperature'),
          colour: '--failed',
          values: points.map((point) => point.temperature),
        },
      ],
      power: [
        {
          label: t('gpu.power'),
          colour: '--paused',
          values: points.map((point) => (point.power_mw === null ? null : point.power_mw / 1000)),
        },
      ],
    };
  }, [points, t]);
  return (
    <Dialog
      wide
      open
      onClose={onClose}
      title={`${t('gpu.historyOf', { index: gpu.index })} · ${gpu.name || gpu.uuid}`}
      description={t('gpu.historyText')}
    >
      <Segmented
        label={t('gpu.span')}
        value={span}
        onChange={setSpan}
        options={(Object.keys(SPANS) as Span[]).map((name) => [name, t(`span.${name}`)])}
      />
      {error && <p className="error-text">{error.message}</p>}
      {!charts && !error && <Skeleton rows={3} tall />}
      {charts && charts.times.length < 2 && <p className="muted">{t('gpu.historyEmpty')}</p>}
      {charts && charts.times.length >= 2 && (
        <div className="charts">
          <Chart
            label={t('gpu.memory')}
            times={charts.times}
            span={asked}
            lines={charts.memory}
            format={bytes}
            inBytes
            height={150}
            {...(gpu.memory_total ? { max: gpu.memory_total } : {})}
          />
          <Chart
            label={t('gpu.utilization')}
            times={charts.times}
            span={asked}
            lines={charts.use}
            format={percent}
            height={150}
            max={100}
          />
          <Chart
            label={t('gpu.temperature')}
            times={charts.times}
            span={asked}
            lines={charts.heat}
            format={celsius}
            height={120}
            max={100}
          />
          <Chart
            label={t('gpu.power')}
            times={charts.times}
            span={asked}
            lines={charts.power}
            format={watts}
            height={120}
          />
        </div>
      )}
    </Dialog>
  );
}
