// GPUs × jobs over time.

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { ChartGantt } from 'lucide-react';
import { useMemo, useState, type KeyboardEvent } from 'react';
import { useLocation } from 'wouter';
import { api } from '../../api/client';
import { useGpus } from '../../api/data';
import type { Span } from '../../api/types';
import { useLanguage } from '../../i18n';
import { duration, tick } from '../../lib/format';
import { useNow } from '../../lib/now';
import { Empty, Skeleton } from '../../ui/basic';
import { Segmented } from '../../ui/fields';
import { idOf, lanes, neighbour } from './lanes';

const MINUTE = 60_000;
const SPANS = {
  '10m': 10 * MINUTE,
  '1h': 60 * MINUTE,
  '6h': 360 * MINUTE,
  '1d': 1440 * MINUTE,
  '7d': 10_080 * MINUTE,
} as const;
type SpanName = keyof typeof SPANS;
const LONGEST: SpanName = '7d';
const TICKS = 5;
/** Many rows are drawn thinner, so that the other cards stay in sight. */
const rowOf = (rows: number) => (rows <= 4 ? 24 : rows <= 12 ? 14 : 7);
const NAMED = 14;

/** The shortest time that has all of them in it. */
export function fitting(started: readonly number[], now: number): SpanName {
  const first = Math.min(now, ...started);
  return (Object.keys(SPANS) as SpanName[]).find((name) => now - first < SPANS[name]) ?? LONGEST;
}

function title(span: Span, now: number, words: { state: string }): string {
  const ran = duration((span.ended_at ?? now) - span.started_at);
  return `${span.job} ${span.name} · ${words.state} · ${ran}`;
}

export default function Timeline() {
  const { t, language } = useLanguage();
  const [, go] = useLocation();
  const [chosen, setChosen] = useState<SpanName | null>(null);
  // With nothing chosen all there may be, and of that what it fills.
  const asked = chosen ?? LONGEST;
  const now = useNow(true);
  const { data: gpus } = useGpus();
  const { data, error, isPending } = useQuery({
    queryKey: ['timeline', asked],
    queryFn: () => {
      const to = Date.now();
      return api.timeline(to - SPANS[asked], to);
    },
    refetchInterval: 15_000,
    placeholderData: keepPreviousData,
  });
  const started = data?.attempts.map((span) => span.started_at) ?? [];
  const name = chosen ?? (started.length ? fitting(started, now) : asked);
  const from = now - SPANS[name];
  const drawn = useMemo(
    () => lanes(gpus ?? [], data?.attempts ?? [], from, now),
    [gpus, data, from, now],
  );
  // Of thousands of bars one is a stop on the way with Tab; arrows lead on from there.
  const [focused, setFocused] = useState('');
  const ids = drawn.flatMap((lane) => lane.bars.map((bar) => idOf(lane, bar)));
  const stop = ids.includes(focused) ? focused : ids[0];
  const walk = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const next = neighbour(drawn, focused, event.key);
    if (!next) return;
    event.preventDefault();
    document.getElementById(next)?.focus();
  };
  const at = (time: number) => `${(100 * (time - from)) / SPANS[name]}%`;
  return (
    <div className="stack">
      <div className="toolbar">
        <Segmented
          label={t('gpu.span')}
          value={name}
          onChange={setChosen}
          options={(Object.keys(SPANS) as SpanName[]).map((key) => [key, t(`span.${key}`)])}
        />
        <ul className="legend">
          {(['running', 'succeeded', 'failed', 'killed'] as const).map((state) => (
            <li key={state}>
              <i className={`bar-${state}`} aria-hidden />
              {t(`state.${state}`)}
            </li>
          ))}
        </ul>
        {data?.more && <span className="muted">{t('timeline.more')}</span>}
      </div>
      {isPending && <Skeleton rows={6} />}
      {error && <p className="error-text">{error.message}</p>}
      {data && !drawn.some((lane) => lane.bars.length) && (
        <Empty icon={ChartGantt} title={t('timeline.none')}>
          <p>{t('timeline.noneText')}</p>
        </Empty>
      )}
      {data && drawn.some((lane) => lane.bars.length) && (
        <div className="gantt" role="region" aria-label={t('view.timeline')} onKeyDown={walk}>
          <div className="gantt-axis" aria-hidden>
            {Array.from({ length: TICKS + 1 }, (_, i) => (
              <span key={i} style={{ left: `${(100 * i) / TICKS}%` }}>
                {tick(from + (SPANS[name] * i) / TICKS, SPANS[name], language)}
              </span>
            ))}
          </div>
          {drawn.map((lane) => (
            <div key={lane.uuid} className="gantt-lane">
              <span className="gantt-label">{lane.label || t('timeline.noGpu')}</span>
              <div className="gantt-track" style={{ height: lane.rows * rowOf(lane.rows) + 8 }}>
                {lane.bars.map((bar) => {
                  const words = title(bar.span, now, {
                    state:
                      bar.span.state === 'revoked'
                        ? t('attempt.revoked')
                        : t(`state.${bar.span.state}`),
                  });
                  const id = idOf(lane, bar);
                  return (
                    <button
                      key={id}
                      id={id}
                      type="button"
                      tabIndex={id === stop ? 0 : -1}
                      onFocus={() => setFocused(id)}
                      className={`gantt-bar bar-${bar.span.state}`}
                      style={{
                        left: at(bar.begin),
                        width: `max(3px, ${(100 * (bar.end - bar.begin)) / SPANS[name]}%)`,
                        top: 4 + bar.row * rowOf(lane.rows),
                        height: rowOf(lane.rows) - 3,
                      }}
                      title={words}
                      aria-label={words}
                      onClick={() => go(`/state/${bar.span.job}`)}
                    >
                      {rowOf(lane.rows) >= NAMED && <span>{bar.span.name}</span>}
                    </button>
                  );
                })}
              </div>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
