// A chart over time or over a parameter. Comes with its page, not with the first.

import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useLanguage } from '../i18n';
import { clock, tick } from '../lib/format';

export interface Line {
  label: string;
  /** A colour token, as --own. */
  colour: string;
  values: (number | null)[];
  fill?: boolean;
  dash?: boolean;
}

/** Steps of the axis for bytes: powers of two, so that its marks are whole GiB. */
const BYTE_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i);

const token = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';

export default function Chart({
  label,
  times,
  span,
  lines,
  height = 180,
  max,
  format,
  inBytes = false,
}: {
  label: string;
  /** Milliseconds. */
  times: number[];
  /** What the axis shows, from and to; undefined: as much as there is. */
  span?: readonly [number, number] | undefined;
  lines: Line[];
  height?: number;
  max?: number;
  format: (value: number) => string;
  inBytes?: boolean;
}) {
  const { language } = useLanguage();
  const place = useRef<HTMLDivElement>(null);
  const [from, to] = span ?? [];
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const axis = {
        stroke: token('--ink-3'),
        grid: { stroke: token('--line'), width: 1 },
        ticks: { show: false },
        font: `11px ${token('--font-sans')}`,
      };
      plot = new uPlot(
        {
          width: element.clientWidth,
          height,
          cursor: { y: false },
          legend: { live: true },
          // Where nobody points, the newest is told.
          hooks: {
            setLegend: [
              (drawn) => {
                if (typeof drawn.legend.idx !== 'number') {
                  drawn.setLegend({ idx: times.length - 1 }, false);
                }
              },
            ],
          },
          scales: {
            x: {
              time: true,
              ...(from === undefined || to === undefined
                ? {}
                : { range: [from / 1000, to / 1000] as [number, number] }),
            },
            y: { range: (_, low, high) => [Math.min(0, low), max ?? (high > 0 ? high * 1.1 : 1)] },
          },
          axes: [
            {
              ...axis,
              space: 90,
              size: 30,
              values: (drawn, ticks) => {
                const { min = 0, max: end = 0 } = drawn.scales['x'] ?? {};
                return ticks.map((at) => tick(at * 1000, (end - min) * 1000, language));
              },
            },
            {
              ...axis,
              size: 64,
              ...(inBytes ? { incrs: BYTE_STEPS } : {}),
              values: (_, ticks) => ticks.map(format),
            },
          ],
          series: [
            {
              label: '',
              value: (_, at: number | null) => (at === null ? '' : clock(at * 1000, language)),
            },
            ...lines.map((line) => ({
              label: line.label,
              stroke: token(line.colour),
              width: 1.6,
              ...(line.fill ? { fill: `${token(line.colour)}22` } : {}),
              ...(line.dash ? { dash: [5, 4] } : {}),
              points: { show: false },
              spanGaps: false,
              value: (_: uPlot, value: number | null) => (value === null ? '–' : format(value)),
            })),
          ],
        },
        [times.map((time) => time / 1000), ...lines.map((line) => line.values)],
        element,
      );
      plot.setLegend({ idx: times.length - 1 }, false);
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    // The colours are drawn, not styled: another theme needs another drawing.
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      themed.disconnect();
      plot?.destroy();
    };
  }, [times, from, to, lines, height, max, format, inBytes, language]);
  return <div ref={place} className="chart" role="img" aria-label={label} />;
}
