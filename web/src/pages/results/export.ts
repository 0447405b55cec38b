// The table as a file.

import type { Results } from '../../api/types';

type Group = Results['groups'][number];

const quote = (cell: string) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

export function metricsOf(results: Results): string[] {
  return [...new Set(results.groups.flatMap((group) => Object.keys(group.metrics)))];
}

export function csv(results: Results): string {
  const metrics = metricsOf(results);
  const head = [
    ...results.by,
    'runs',
    'failed',
    ...metrics.flatMap((name) => [`${name} mean`, `${name} std`, `${name} n`]),
  ];
  const row = (group: Group) => [
    ...results.by.map((name) => group.params[name] ?? ''),
    String(group.runs),
    String(group.failed),
    ...metrics.flatMap((name) => {
      const metric = group.metrics[name];
      return [metric?.mean, metric?.std, metric?.n].map((value) => String(value ?? ''));
    }),
  ];
  return (
    [head, ...results.groups.map(row)].map((cells) => cells.map(quote).join(',')).join('\n') + '\n'
  );
}

export interface PlotPoint {
  x: string;
  mean: number;
  std: number;
}

/** As numbers where they are numbers. */
export function byValue(a: string, b: string): number {
  const [p, q] = [Number(a), Number(b)];
  return Number.isNaN(p) || Number.isNaN(q) ? a.localeCompare(b) : p - q;
}

/** The means of a metric for each value of a parameter, in the order of numbers where they are numbers. */
export function plotPoints(
  results: Results,
  metric: string,
  parameter: string,
): Map<string, PlotPoint[]> {
  const others = results.by.filter((name) => name !== parameter);
  const lines = new Map<string, PlotPoint[]>();
  for (const group of results.groups) {
    const value = group.metrics[metric];
    const x = group.params[parameter];
    if (value?.mean === null || value?.mean === undefined || x === undefined) continue;
    const line = others.map((name) => `${name}=${group.params[name] ?? ''}`).join(' ');
    const points = lines.get(line) ?? [];
    points.push({ x, mean: value.mean, std: value.std ?? 0 });
    lines.set(line, points);
  }
  for (const points of lines.values()) {
    points.sort((a, b) => byValue(a.x, b.x));
  }
  return lines;
}

export function save(name: string, type: string, content: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
