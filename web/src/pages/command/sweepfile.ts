// A sweep as a job file.

import { AT_START } from '../../ui/vocabulary';

export interface Axis {
  name: string;
  values: string;
}

export interface Sweep {
  name: string;
  command: string;
  axes: Axis[];
  seeds: string;
  gpus: string;
  gpuMemory: string;
  queue: string;
  retries: string;
}

/** Numbers and plain words stand as they are, whatever YAML might read otherwise is quoted. */
export function scalar(value: string): string {
  if (/^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(value)) return value;
  if (/^[A-Za-z][\w./-]*$/.test(value) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(value))
    return value;
  return JSON.stringify(value);
}

/** Commas, ranges and scales are the daemon's to read; what has none of them is one value. */
export function valuesOf(text: string): string {
  const values = text.trim();
  return /,|\.\.|\(/.test(values) ? JSON.stringify(values) : `[${scalar(values)}]`;
}

/** Where something of a sweep is written down: an axis has its place among them. */
export type SweepField = Exclude<keyof Sweep, 'axes'> | number;

/** A line that nobody has begun to fill in is no axis. */
function axesOf(sweep: Sweep): (Axis & { field: SweepField })[] {
  return [
    ...sweep.axes
      .map((axis, field) => ({ ...axis, field }))
      .filter(({ name, values }) => name.trim() || values.trim()),
    ...(sweep.seeds.trim() ? [{ name: 'seed', values: sweep.seeds, field: 'seeds' as const }] : []),
  ];
}

/** {words} of the command; ${word} is the shell's, {{word}} meant as it is. */
const wordsOf = (command: string): Set<string> =>
  new Set(
    [...command.matchAll(/(?<![${])\{([A-Za-z_][\w-]*)\}(?!\})/g)].map((word) => word[1] ?? ''),
  );

/** Those that nothing fills in, most often a slip. */
export function unfilled(sweep: Sweep): string[] {
  const filled = new Set([...AT_START, ...axesOf(sweep).map(({ name }) => name.trim())]);
  return [...wordsOf(sweep.command)].filter((word) => !filled.has(word));
}

/** Axes that make more jobs of the very same command. */
export function unused(sweep: Sweep): SweepField[] {
  const words = wordsOf(sweep.command);
  return axesOf(sweep).flatMap(({ name, field }) =>
    name.trim() && !words.has(name.trim()) ? [field] : [],
  );
}

/** The file, and what of the sweep each of its lines says; undefined: the same for every sweep. */
function linesOf(sweep: Sweep): [string, SweepField?][] {
  const axes = axesOf(sweep);
  const lines: [string, SweepField?][] = [
    ['version: 1'],
    [`name: ${scalar(sweep.name || 'sweep')}`, 'name'],
    ['jobs:'],
    [`  - name: ${scalar(sweep.name || 'sweep')}`, 'name'],
  ];
  if (axes.length) {
    lines.push(['    matrix:']);
    for (const { name, values, field } of axes)
      lines.push([`      ${scalar(name.trim())}: ${valuesOf(values)}`, field]);
  }
  lines.push(['    run: |', 'command']);
  for (const line of sweep.command.split('\n')) lines.push([`      ${line}`, 'command']);
  if (sweep.gpus && sweep.gpus !== '1') lines.push([`    gpus: ${scalar(sweep.gpus)}`, 'gpus']);
  if (sweep.gpuMemory) lines.push([`    gpu_memory: ${scalar(sweep.gpuMemory)}`, 'gpuMemory']);
  if (sweep.queue) lines.push([`    queue: ${scalar(sweep.queue)}`, 'queue']);
  if (sweep.retries && sweep.retries !== '0')
    lines.push([`    retries: ${scalar(sweep.retries)}`, 'retries']);
  return lines;
}

export const sweepFile = (sweep: Sweep): string =>
  `${linesOf(sweep)
    .map(([line]) => line)
    .join('\n')}\n`;

/** What is written in this line of the file, the first being 1. */
export const fieldAt = (sweep: Sweep, line: number): SweepField | undefined =>
  linesOf(sweep)[line - 1]?.[1];
