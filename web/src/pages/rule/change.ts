// What is asked of the daemon when rules are changed, and what takes it back.

import type { Rule, RuleChange } from '../../api/types';

/** New values by key; null takes back what this scope says. */
export type Draft = Record<string, string | null>;

export function scopeQuery(scope: string): { queue?: string; batch?: number } {
  if (scope.startsWith('queue:')) return { queue: scope.slice(6) };
  if (scope.startsWith('batch:')) return { batch: Number(scope.slice(6)) };
  return {};
}

/** A list that is empty is left out. */
function request(
  set: { key: string; value: string }[],
  unset: string[],
  scope: string,
  save: boolean,
): RuleChange {
  return {
    ...(set.length ? { set } : {}),
    ...(unset.length ? { unset } : {}),
    ...(save && scope === 'instance' ? { save: true } : {}),
    ...scopeQuery(scope),
  };
}

export function changeOf(draft: Draft, scope: string, save: boolean): RuleChange {
  const set = Object.entries(draft).flatMap(([key, value]) =>
    value === null ? [] : [{ key, value }],
  );
  const unset = Object.entries(draft).flatMap(([key, value]) => (value === null ? [key] : []));
  return request(set, unset, scope, save);
}

/** What was edited after `sent` was on its way. */
export const unsent = (now: Draft, sent: Draft): Draft =>
  Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== sent[key]));

/** Whether this scope itself says something of it. */
export const isOwn = (rule: Rule, scope: string): boolean =>
  scope === 'instance'
    ? rule.source !== 'default' && rule.default !== null
    : rule.source === scope.replace(':', ' ');

/** Totals of resources and limits of queues are of no layer: below them is nothing to go back to. */
const isKept = ({ key }: Rule) => /^resources\.|^queue\..+\.limit$/.test(key);

/**
 * Takes a change back, to where each value came from: what berth.yaml says is to follow that file again, and
 * is no rule of this run.
 */
export function undoOf(
  draft: Draft,
  before: readonly Rule[],
  scope: string,
  saved: boolean,
): RuleChange {
  const rules = before.filter((rule) => rule.key in draft);
  const below = (rule: Rule) =>
    !isKept(rule) && (!isOwn(rule, scope) || (rule.source === 'berth.yaml' && !saved));
  return request(
    rules.filter((rule) => !below(rule)).map(({ key, value }) => ({ key, value })),
    rules.filter(below).map(({ key }) => key),
    scope,
    saved,
  );
}
