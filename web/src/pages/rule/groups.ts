// Rules in the order in which one thinks of them.

import type { Rule } from '../../api/types';
import { helpInChinese } from './help.zh';

export const GROUPS = [
  'share',
  'choice',
  'order',
  'foreign',
  'retry',
  'keeping',
  'limits',
] as const;
export type Group = (typeof GROUPS)[number];

const PLACES: Record<string, Group> = {
  max_concurrent: 'share',
  gpus: 'share',
  gpu_left: 'share',
  gpu_left_mode: 'share',
  min_gpu: 'share',
  max_gpu: 'share',
  max_utilization: 'share',
  min_free_memory: 'share',
  memory_margin: 'share',
  keep_gpu_memory: 'share',
  keep_host_memory: 'share',
  maximize_resource_utilization: 'share',
  shrink_claims: 'share',
  strategy: 'choice',
  topology: 'choice',
  cpu_affinity: 'choice',
  sample_age_max: 'choice',
  order: 'order',
  seed: 'order',
  fair_share: 'order',
  half_life: 'order',
  aging: 'order',
  backfill: 'order',
  hold_after: 'order',
  max_wait: 'order',
  preemptible: 'order',
  opportunistic: 'foreign',
  quiet_time: 'foreign',
  keep_finished: 'keeping',
  keep_jobs: 'keeping',
  log_limit: 'keeping',
};

export function groupOf(key: string): Group {
  const known = PLACES[key];
  if (known) return known;
  if (key.startsWith('foreign.')) return 'foreign';
  if (key.startsWith('retry_config.')) return 'retry';
  return 'limits';
}

export function grouped(rules: readonly Rule[], wanted: string): [Group, Rule[]][] {
  const needle = wanted.trim().toLowerCase();
  const match = ({ key, help }: Rule) =>
    [key, help, helpInChinese(key) ?? ''].some((words) => words.toLowerCase().includes(needle));
  return GROUPS.map((group): [Group, Rule[]] => [
    group,
    rules.filter((rule) => groupOf(rule.key) === group && match(rule)),
  ]).filter(([, list]) => list.length > 0);
}

/** Null: a free text, not one of a few. */
export function choices(type: string): string[] | null {
  if (type === 'BOOL') return ['true', 'false'];
  return /^[a-z_]+(\|[a-z_]+)+$/.test(type) ? type.split('|') : null;
}
