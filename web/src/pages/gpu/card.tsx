import { History, MoreHorizontal } from 'lucide-react';
import { Link } from 'wouter';
import { api } from '../../api/client';
import { useGuard } from '../../api/guard';
import { useSamples } from '../../api/samples';
import type { Gpu, GpuPoint, GpuProcess } from '../../api/types';
import { useLanguage, type Key } from '../../i18n';
import { bytes, moment } from '../../lib/format';
import { cardText } from '../../lib/words';
import { IconButton } from '../../ui/basic';
import { Menu, useOverlays } from '../../ui/overlay';
import { Spark, type SparkPoint } from '../../ui/spark';
import { splitMemory } from './memory';

const HOTTEST = 100;
const LEAST_POWER = 300_000;
/** The time of the small charts. */
export const SHOWN = 2 * 60_000;

export type GpuMark = Gpu['state'] | 'lost' | 'draining' | 'reserved';

const PARTS = {
  own: 'gpu.own',
  foreign: 'gpu.foreign',
  unknown: 'gpu.unknownWhose',
  claimed: 'gpu.claimed',
  free: 'gpu.free',
} as const satisfies Record<string, Key>;

function MemoryBar({ gpu, silent }: { gpu: Gpu; silent: boolean }) {
  const { t } = useLanguage();
  const split = splitMemory(gpu);
  if (!split) {
    return (
      <div className="memory">
        <div className="memory-bar unknown" />
        <p className="muted">{t(silent ? 'gpu.silent' : 'gpu.unknown')}</p>
      </div>
    );
  }
  const parts = [
    ['own', split.own],
    ['foreign', split.foreign],
    ['unknown', split.unknown],
    ['claimed', split.claimed],
    ['free', split.free],
  ] as const;
  const words = parts
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${t(PARTS[name])} ${bytes(value)}`)
    .join(', ');
  return (
    <div className="memory">
      <div className="memory-head">
        <span className="big">{bytes(gpu.memory_used)}</span>
        <span className="muted">/ {bytes(split.total)}</span>
        <span className="memory-free">{t('gpu.freeAmount', { amount: bytes(split.free) })}</span>
      </div>
      <div className="memory-bar" role="img" aria-label={words}>
        {parts.map(
          ([name, value]) =>
            value > 0 &&
            name !== 'free' && (
              <span
                key={name}
                className={name}
                style={{ width: `${(100 * value) / split.total}%` }}
                title={`${t(PARTS[name])} ${bytes(value)}`}
              />
            ),
        )}
      </div>
      <ul className="legend">
        {parts.map(
          ([name, value]) =>
            value > 0 &&
            name !== 'free' && (
              <li key={name}>
                <i className={name} aria-hidden />
                {t(PARTS[name])} {bytes(value)}
              </li>
            ),
        )}
      </ul>
    </div>
  );
}

function Gauge({
  name,
  value,
  points,
  max,
  now,
}: {
  name: string;
  value: string;
  points: readonly SparkPoint[];
  max: number;
  now: number;
}) {
  const { t } = useLanguage();
  return (
    <div className="gauge" title={t('gpu.lastMinutes', { count: SHOWN / 60_000 })}>
      <span className="gauge-name">{name}</span>
      <span className="gauge-value">{value}</span>
      <Spark
        points={points}
        max={max}
        from={now - SHOWN}
        to={now}
        label={`${name}: ${value}, ${t('gpu.lastMinutes', { count: SHOWN / 60_000 })}`}
      />
    </div>
  );
}

/** The program and what it was told, without where the program lies. */
function shortCommand(process: GpuProcess): string {
  return process.command?.replace(/^\S*\//, '') ?? process.name ?? '–';
}

function Process({ process }: { process: GpuProcess }) {
  const { t, language } = useLanguage();
  const user =
    process.user ??
    (process.uid === null ? t('gpu.stranger') : t('gpu.strangerUid', { uid: process.uid }));
  const command = shortCommand(process);
  return (
    <li>
      <span className="process-what">
        {process.job ? (
          <Link href={`/state/${process.job}`}>{t('gpu.job', { id: process.job })}</Link>
        ) : (
          <span className="stranger">{user}</span>
        )}
        <span className="mono truncate" title={process.command ?? process.name ?? ''}>
          {command}
        </span>
        <span className="num nowrap">{bytes(process.memory)}</span>
      </span>
      <span className="process-who muted">
        {process.job ? `${user} · ` : ''}
        {t('gpu.pid', { pid: process.pid })}
        {process.since ? ` · ${t('gpu.since', { time: moment(process.since, language) })}` : ''}
      </span>
    </li>
  );
}

/** What a card is marked with: what is being done about it counts more than who uses it. */
export function markOf(gpu: Gpu): GpuMark {
  if (gpu.lost) return 'lost';
  if (gpu.state === 'drained' && gpu.claims.length) return 'draining';
  if (gpu.reserved && (gpu.state === 'free' || gpu.state === 'foreign')) return 'reserved';
  return gpu.state;
}

export function GpuCard({
  gpu,
  now,
  silent = false,
  onHistory,
}: {
  gpu: Gpu;
  now: number;
  /** The driver does not answer at present. */
  silent?: boolean;
  onHistory: () => void;
}) {
  const { t } = useLanguage();
  const samples = useSamples(gpu.uuid);
  const guard = useGuard();
  const { say } = useOverlays();
  const drained = gpu.state === 'drained';
  const mark = markOf(gpu);
  const why = cardText(gpu, t);
  const pointsOf = (value: (point: GpuPoint) => number | null) =>
    samples
      .filter((point) => point.t >= now - SHOWN)
      .map((point) => ({ t: point.t, value: value(point) }));
  const act = (what: Promise<unknown>, done: string, undo?: () => Promise<unknown>) =>
    void what.then(
      () => say(done, undo ? { undo } : {}),
      (error: Error) => say(error.message, { tone: 'bad' }),
    );
  const power = Math.max(LEAST_POWER, ...samples.map((point) => point.power_mw ?? 0));
  const inUse = new Set((gpu.processes ?? []).map((process) => process.job));
  const starting = gpu.claims.filter((claim) => !inUse.has(claim.job));
  return (
    <article className={`gpu-card ${mark}`} aria-labelledby={`gpu-${gpu.index}`}>
      <header>
        <h2 id={`gpu-${gpu.index}`}>
          <span className="gpu-index">{gpu.index}</span>
          <span className="gpu-name" title={`${gpu.name} · ${gpu.uuid}`}>
            {gpu.name || gpu.uuid}
          </span>
        </h2>
        <IconButton
          icon={History}
          label={t('gpu.historyOf', { index: gpu.index })}
          onClick={onHistory}
        />
        <Menu
          trigger={
            <IconButton icon={MoreHorizontal} label={t('gpu.actionsOf', { index: gpu.index })} />
          }
          items={[
            drained
              ? {
                  ...guard,
                  label: t('gpu.undrain'),
                  onSelect: () =>
                    act(api.resumeGpu(gpu.uuid), t('gpu.undrained', { index: gpu.index })),
                }
              : {
                  ...guard,
                  label: t('gpu.drain'),
                  onSelect: () =>
                    act(
                      api.pauseGpu(gpu.uuid, t('gpu.drainWhy')),
                      t('gpu.drainedNow', { index: gpu.index }),
                      () => api.resumeGpu(gpu.uuid),
                    ),
                },
            {
              label: t('gpu.copyUuid'),
              onSelect: () => act(navigator.clipboard.writeText(gpu.uuid), t('common.copied')),
            },
          ]}
        />
      </header>
      <p className="gpu-mark">
        <span className={`gpu-state ${mark}`}>{t(`gpuState.${mark}`)}</span>
        {why && <span>{why}</span>}
      </p>
      <MemoryBar gpu={gpu} silent={silent} />
      <div className="gauges">
        <Gauge
          name={t('gpu.utilization')}
          value={gpu.utilization === null ? '–' : `${gpu.utilization} %`}
          points={pointsOf((point) => point.utilization)}
          now={now}
          max={100}
        />
        <Gauge
          name={t('gpu.temperature')}
          value={gpu.temperature === null ? '–' : `${gpu.temperature} °C`}
          points={pointsOf((point) => point.temperature)}
          now={now}
          max={HOTTEST}
        />
        <Gauge
          name={t('gpu.power')}
          value={gpu.power_mw === null ? '–' : `${Math.round(gpu.power_mw / 1000)} W`}
          points={pointsOf((point) => point.power_mw)}
          now={now}
          max={power}
        />
      </div>
      {gpu.processes === null && silent ? null : gpu.processes === null ? (
        <p className="muted quiet-line">{t('gpu.processesUnknown')}</p>
      ) : gpu.processes.length + starting.length ? (
        <ul className="processes">
          {gpu.processes.map((process) => (
            <Process key={process.pid} process={process} />
          ))}
          {starting.map((claim) => (
            <li key={`claim-${claim.job}`}>
              <span className="process-what">
                <Link href={`/state/${claim.job}`}>{t('gpu.job', { id: claim.job })}</Link>
                <span className="muted truncate">{t('gpu.claimOnly')}</span>
                <span className="num nowrap">
                  {claim.memory === null ? t('gpu.whole') : bytes(claim.memory)}
                </span>
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <p className="muted quiet-line">{t('gpu.idle')}</p>
      )}
    </article>
  );
}
