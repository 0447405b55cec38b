// A job as it would be submitted again.

import type { JobDetail, JobSpec } from '../../api/types';
import { text, timeText } from '../../lib/format';
import { parseSize, parseTime } from '../../lib/units';
import type { Kept } from './kept';

/** What can be edited before a job is submitted again. */
export interface Draft {
  name: string;
  queue: string;
  priority: string;
  gpus: string;
  gpuMemory: string;
  retries: string;
  time: string;
  cwd: string;
  log: string;
  /** Each may have many lines. */
  commands: string[];
}
/** What is one line of text. */
export type Line = Exclude<keyof Draft, 'commands'>;

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

function sizeText(value: number | null): string {
  if (value === null) return '';
  if (value % GIB === 0) return `${value / GIB}GiB`;
  return value % MIB === 0 ? `${value / MIB}MiB` : String(value);
}

/** Each command as shell. Words that need it are quoted. */
export function commandTexts(detail: JobDetail): string[] {
  const quote = (word: string) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
  return detail.commands.map(({ shell, argv }) => {
    const words = argv.map(text);
    return shell ? words.join(' ') : words.map(quote).join(' ');
  });
}

export function draftOf(detail: JobDetail): Draft {
  const { job } = detail;
  return {
    name: job.name,
    queue: job.queue,
    priority: String(job.priority),
    gpus: job.gpus === job.gpus_max ? String(job.gpus) : `${job.gpus}..${job.gpus_max}`,
    gpuMemory: sizeText(job.gpu_memory),
    retries: String(job.retries),
    time: detail.time_ms ? timeText(detail.time_ms) : '',
    cwd: text(job.cwd),
    log: detail.log === undefined ? '' : text(detail.log),
    commands: commandTexts(detail),
  };
}

export type Wrong = Partial<
  Record<keyof Draft, 'number' | 'size' | 'time' | 'path' | 'empty' | 'range'>
>;

export function check(draft: Draft): Wrong {
  const wrong: Wrong = {};
  if (!draft.commands.some((command) => command.trim())) wrong.commands = 'empty';
  if (!draft.cwd.startsWith('/')) wrong.cwd = 'path';
  if (!/^-?\d+$/.test(draft.priority)) wrong.priority = 'number';
  if (!/^\d+$/.test(draft.retries)) wrong.retries = 'number';
  if (!/^\d+(\.\.\d+)?$/.test(draft.gpus)) wrong.gpus = 'range';
  if (draft.gpuMemory && parseSize(draft.gpuMemory) === undefined) wrong.gpuMemory = 'size';
  if (draft.time && parseTime(draft.time) === undefined) wrong.time = 'time';
  return wrong;
}

function gpuCount(value: string): { min: number; max: number } {
  const [min = 0, max = min] = value.split('..').map(Number);
  return { min, max };
}

/** A command that nobody has touched stays as it was, without a shell if it had none. */
function commandsOf(detail: JobDetail, draft: Draft, before: Draft): JobSpec['commands'] {
  return draft.commands
    .filter((command) => command.trim())
    .map((command) => {
      const same = detail.commands[before.commands.indexOf(command)];
      return same ?? { shell: true, argv: [command] };
    });
}

/** Whether whoever runs only what has not been done yet may take one for the other. */
function isSameExperiment(draft: Draft, before: Draft): boolean {
  const what = ({ name, cwd, commands }: Draft) => JSON.stringify([name, cwd, commands]);
  return what(draft) === what(before);
}

/** What the job had and the draft does not show stays as it was. */
export function specOf(detail: JobDetail, draft: Draft, kept: Kept): JobSpec {
  const before = draftOf(detail);
  const { job } = detail;
  const memory = draft.gpuMemory ? parseSize(draft.gpuMemory) : undefined;
  return {
    name: draft.name,
    queue: draft.queue,
    priority: Number(draft.priority),
    gpus: gpuCount(draft.gpus),
    ...(memory === undefined ? {} : { gpu_memory: Number(memory) }),
    cpus: detail.cpus,
    memory: detail.memory,
    resources: detail.resources,
    retries: Number(draft.retries),
    rules: detail.rules,
    commands: commandsOf(detail, draft, before),
    env: detail.env,
    cwd: draft.cwd === before.cwd ? job.cwd : draft.cwd,
    time_ms: draft.time ? Number(parseTime(draft.time) ?? 0) : 0,
    grace_ms: detail.grace_ms,
    linger: detail.linger,
    ...(detail.work_dir === undefined ? {} : { work_dir: detail.work_dir }),
    ...(detail.signal === undefined ? {} : { signal: detail.signal }),
    ...(job.params ? { params: job.params } : {}),
    ...(draft.log ? { log: (draft.log === before.log && detail.log) || draft.log } : {}),
    ...(detail.fingerprint && isSameExperiment(draft, before)
      ? { fingerprint: detail.fingerprint }
      : {}),
    ...(kept.after.length
      ? { after: kept.after, ...(detail.after_kind ? { after_kind: detail.after_kind } : {}) }
      : {}),
    ...(kept.startAt === null ? {} : { start_at: kept.startAt }),
  };
}

export function submission(detail: JobDetail, draft: Draft, kept: Kept, key: string) {
  return {
    key,
    environment: detail.environment ?? [],
    jobs: [specOf(detail, draft, kept)],
  };
}
