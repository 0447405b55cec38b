// A small chart of the last minutes.

const WIDTH = 120;
const HEIGHT = 28;

export interface SparkPoint {
  t: number;
  value: number | null;
}

/** The parts between gaps, from left to right, in the units of the drawing. */
export function sparkParts(
  points: readonly SparkPoint[],
  max: number,
  from: number,
  to: number,
): [number, number][][] {
  const x = (t: number) => (WIDTH * (t - from)) / (to - from);
  const y = (value: number) =>
    HEIGHT - 1.5 - (Math.min(max, Math.max(0, value)) / max) * (HEIGHT - 3);
  const parts: [number, number][][] = [];
  let open: [number, number][] | null = null;
  for (const { t, value } of points) {
    if (value === null) {
      open = null;
    } else if (t <= to) {
      if (!open) parts.push((open = []));
      open.push([x(t), y(value)]);
    }
  }
  // What was told last holds until something else is told.
  const last = open?.at(-1);
  if (last) open?.push([WIDTH, last[1]]);
  return parts;
}

const path = (part: readonly (readonly [number, number])[]) =>
  part.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

export function Spark({
  points,
  max,
  from,
  to,
  label,
}: {
  points: readonly SparkPoint[];
  max: number;
  /** The time shown. */
  from: number;
  to: number;
  label: string;
}) {
  const parts = sparkParts(points, max, from, to);
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {parts.map((part, i) => (
        <g key={i}>
          <path
            className="spark-area"
            d={`${path(part)}L${part.at(-1)?.[0].toFixed(1)} ${HEIGHT}L${part[0]?.[0].toFixed(1)} ${HEIGHT}Z`}
          />
          <path className="spark-line" d={path(part)} />
        </g>
      ))}
    </svg>
  );
}
