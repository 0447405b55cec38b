// A metric against a parameter: means with their spread.

import { memo, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useLanguage } from '../../i18n';
import { count } from '../../lib/format';
import { byValue, type PlotPoint } from './export';

const LEAST_WIDTH = 320;
const HEIGHT = 300;
const LEFT = 76;
const BOTTOM = 52;
/** Lines stand side by side, so that none hides another, and keep to their value of the parameter. */
const ASIDE = 7;
const SHARE = 0.8;
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
const DASHES = [undefined, '7 3', '2 3'];
/** As many as can be told from each other. */
const MOST_LINES = COLOURS.length * DASHES.length;
/** Of more points only the lines are drawn. */
const MOST_DOTS = 1_000;
const LABEL = 14;
const LETTER = 7;
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

const lookOf = (line: number) => ({
  color: `var(${COLOURS[line % COLOURS.length]})`,
  strokeDasharray: DASHES[Math.floor(line / COLOURS.length)],
});

const spread = (x: number, low: number, high: number) =>
  `M${x} ${low}V${high}M${x - CAP} ${low}h${2 * CAP}M${x - CAP} ${high}h${2 * CAP}`;

export const Plot = memo(function Plot({
  lines,
  metric,
  parameter,
}: {
  lines: Map<string, PlotPoint[]>;
  metric: string;
  parameter: string;
}) {
  const { t, language } = useLanguage();
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
  const drawn = useMemo(() => [...lines].slice(0, MOST_LINES), [lines]);
  const all = useMemo(() => drawn.flatMap(([, points]) => points), [drawn]);
  const xs = useMemo(() => {
    const sorted = [...new Set(all.map((point) => point.x))].sort(byValue);
    return new Map(sorted.map((x, i) => [x, i]));
  }, [all]);
  if (!all.length) return <p className="muted">{t('results.noPlot')}</p>;
  const low = Math.min(...all.map((point) => point.mean - point.std));
  const high = Math.max(...all.map((point) => point.mean + point.std));
  const ticks = niceTicks(low, high);
  const [from = 0, to = 1] = [ticks[0], ticks.at(-1)];
  const room = (width - LEFT - RIGHT) / xs.size;
  const aside = Math.min(ASIDE, (SHARE * room) / drawn.length);
  const middle = (x: string) => LEFT + room * ((xs.get(x) ?? 0) + 0.5);
  const px = (x: string, line: number) => middle(x) + (line - (drawn.length - 1) / 2) * aside;
  const py = (y: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - from) / (to - from));
  const names = [...xs.keys()].map((x) => x.slice(0, LABEL));
  const every = Math.ceil((LETTER * (1 + Math.max(...names.map((name) => name.length)))) / room);
  return (
    <figure>
      <div
        ref={place}
        className="plot-place"
        tabIndex={0}
        role="group"
        aria-label={t('results.plotTitle', { metric, parameter })}
      >
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
          {[...xs].map(
            ([x, i]) =>
              i % every === 0 && (
                <text key={x} x={middle(x)} y={HEIGHT - BOTTOM + 18} textAnchor="middle">
                  {names[i]}
                </text>
              ),
          )}
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
          {drawn.map(([name, points], i) => (
            <g key={name} style={{ color: lookOf(i).color }}>
              <polyline
                className="plot-line"
                strokeDasharray={lookOf(i).strokeDasharray}
                points={points.map((point) => `${px(point.x, i)},${py(point.mean)}`).join(' ')}
              />
              {all.length <= MOST_DOTS &&
                points.map((point) => (
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
          ))}
        </svg>
      </div>
      <figcaption className="muted">
        {t(all.length <= MOST_DOTS ? 'results.spread' : 'results.means')}
        {lines.size > drawn.length &&
          ` ${t('results.someLines', {
            count: count(drawn.length, language),
            total: count(lines.size, language),
          })}`}
      </figcaption>
      {drawn.length > 1 && (
        <ul className="legend">
          {drawn.map(([name], i) => (
            <li key={name}>
              <svg width={22} height={10} style={{ color: lookOf(i).color }} aria-hidden>
                <path
                  className="plot-line"
                  strokeDasharray={lookOf(i).strokeDasharray}
                  d="M0 5h22"
                />
              </svg>
              {name}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
});
