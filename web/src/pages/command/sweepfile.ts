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

/** A line that nobody has begun to fill in is no axis. */
function axesOf(sweep: Sweep): Axis[] {
  const seeds = { name: 'seed', values: sweep.seeds };
  return [
    ...sweep.axes.filter(({ name, values }) => name.trim() || values.trim()),
    ...(sweep.seeds.trim() ? [seeds] : []),
  ];
}

/** {words} that nothing fills in, most often a slip; ${word} is the shell's, {{word}} meant as it is. */
export function unfilled(sweep: Sweep): string[] {
  const known = new Set([...AT_START, ...axesOf(sweep).map(({ name }) => name.trim())]);
  const words = [...sweep.command.matchAll(/(?<![${])\{([A-Za-z_][\w-]*)\}(?!\})/g)];
  return [...new Set(words.map((word) => word[1] ?? '').filter((word) => !known.has(word)))];
}

export function sweepFile(sweep: Sweep): string {
  const axes = axesOf(sweep);
  const lines = [
    'version: 1',
    `name: ${scalar(sweep.name || 'sweep')}`,
    'jobs:',
    `  - name: ${scalar(sweep.name || 'sweep')}`,
  ];
  if (axes.length) {
    lines.push('    matrix:');
    for (const { name, values } of axes)
      lines.push(`      ${scalar(name.trim())}: ${valuesOf(values)}`);
  }
  lines.push('    run: |', ...sweep.command.split('\n').map((line) => `      ${line}`));
  if (sweep.gpus && sweep.gpus !== '1') lines.push(`    gpus: ${scalar(sweep.gpus)}`);
  if (sweep.gpuMemory) lines.push(`    gpu_memory: ${scalar(sweep.gpuMemory)}`);
  if (sweep.queue) lines.push(`    queue: ${scalar(sweep.queue)}`);
  if (sweep.retries && sweep.retries !== '0') lines.push(`    retries: ${scalar(sweep.retries)}`);
  return `${lines.join('\n')}\n`;
}
