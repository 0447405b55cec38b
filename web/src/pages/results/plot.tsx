// A metric against a parameter: means with their spread.

import { useEffect, useId, useRef, useState } from 'react';
import { useLanguage } from '../../i18n';
import type { PlotPoint } from './export';

const LEAST_WIDTH = 320;
const HEIGHT = 300;
const LEFT = 76;
const BOTTOM = 52;
/** Lines stand side by side, so that none hides another. */
const ASIDE = 7;
const CAP = 3;
const NEARLY = 1e-9;
const TOP = 12;
const RIGHT = 16;
const COLOURS = [
  '--own',
  '--running',
  '--foreign',
  '--killed',
  '--succeeded',
  '--failed',
  '--paused',
  '--queued',
];
const TICKS = 4;

export function shortNumber(value: number): string {
  if (value !== 0 && (Math.abs(value) < 1e-5 || Math.abs(value) >= 1e6))
    return Number(value.toPrecision(3)).toExponential();
  return String(Number(value.toPrecision(4)));
}

/** About four marks that are easy to read, around what is to be shown. */
export function niceTicks(low: number, high: number): number[] {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5].find((times) => times * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step + NEARLY);
  const last = Math.max(first + 1, Math.ceil(high / step - NEARLY));
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

const spread = (x: number, low: number, high: number) =>
  `M${x} ${low}V${high}M${x - CAP} ${low}h${2 * CAP}M${x - CAP} ${high}h${2 * CAP}`;

export function Plot({
  lines,
  metric,
  parameter,
}: {
  lines: Map<string, PlotPoint[]>;
  metric: string;
  parameter: string;
}) {
  const { t } = useLanguage();
  const title = useId();
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(LEAST_WIDTH);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const resized = new ResizeObserver(() => setWidth(Math.max(LEAST_WIDTH, element.clientWidth)));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const xs = [...new Set([...lines.values()].flat().map((point) => point.x))].sort((a, b) => {
    const [p, q] = [Number(a), Number(b)];
    return Number.isNaN(p) || Number.isNaN(q) ? a.localeCompare(b) : p - q;
  });
  const all = [...lines.values()].flat();
  if (!all.length) return <p className="muted">{t('results.noPlot')}</p>;
  const low = Math.min(...all.map((point) => point.mean - point.std));
  const high = Math.max(...all.map((point) => point.mean + point.std));
  const ticks = niceTicks(low, high);
  const [from = 0, to = 1] = [ticks[0], ticks.at(-1)];
  const middle = (x: string) =>
    LEFT + ((width - LEFT - RIGHT) * (xs.indexOf(x) + 0.5)) / Math.max(1, xs.length);
  const px = (x: string, line: number) => middle(x) + (line - (lines.size - 1) / 2) * ASIDE;
  const py = (y: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - from) / (to - from));
  return (
    <figure>
      <div ref={place} className="plot-place">
        <svg width={width} height={HEIGHT} className="plot" role="img" aria-labelledby={title}>
          <title id={title}>{t('results.plotTitle', { metric, parameter })}</title>
          {ticks.map((tick) => (
            <g key={tick}>
              <line
                x1={LEFT}
                x2={width - RIGHT}
                y1={py(tick)}
                y2={py(tick)}
                className="plot-grid"
              />
              <text x={LEFT - 8} y={py(tick) + 4} textAnchor="end">
                {shortNumber(tick)}
              </text>
            </g>
          ))}
          {xs.map((x) => (
            <text key={x} x={middle(x)} y={HEIGHT - BOTTOM + 18} textAnchor="middle">
              {x.slice(0, 14)}
            </text>
          ))}
          <text
            className="plot-name"
            x={LEFT + (width - LEFT - RIGHT) / 2}
            y={HEIGHT - 8}
            textAnchor="middle"
          >
            {parameter}
          </text>
          <text
            className="plot-name"
            transform={`translate(14 ${TOP + (HEIGHT - TOP - BOTTOM) / 2}) rotate(-90)`}
            textAnchor="middle"
          >
            {metric}
          </text>
          {[...lines].map(([name, points], i) => {
            const colour = `var(${COLOURS[i % COLOURS.length]})`;
            return (
              <g key={name} style={{ color: colour }}>
                <polyline
                  className="plot-line"
                  points={points.map((point) => `${px(point.x, i)},${py(point.mean)}`).join(' ')}
                />
                {points.map((point) => (
                  <g key={point.x}>
                    <path
                      className="plot-spread"
                      d={spread(
                        px(point.x, i),
                        py(point.mean - point.std),
                        py(point.mean + point.std),
                      )}
                    />
                    <circle cx={px(point.x, i)} cy={py(point.mean)} r={3.6} className="plot-dot">
                      <title>{`${name} ${parameter}=${point.x}: ${shortNumber(point.mean)} ± ${shortNumber(point.std)}`}</title>
                    </circle>
                  </g>
                ))}
              </g>
            );
          })}
        </svg>
      </div>
      <figcaption className="muted">{t('results.spread')}</figcaption>
      {lines.size > 1 && (
        <ul className="legend">
          {[...lines.keys()].map((name, i) => (
            <li key={name}>
              <i style={{ background: `var(${COLOURS[i % COLOURS.length]})` }} aria-hidden />
              {name}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
