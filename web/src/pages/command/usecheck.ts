// What the daemon's own parsers say of a text, shortly after somebody has stopped typing.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api } from '../../api/client';
import { useMayChange, useStatus } from '../../api/data';
import type { Checked, Dialect, Problem } from '../../api/types';
import { text as asText } from '../../lib/format';

const WAIT = 300;

export const errorsOf = (problems: readonly Problem[]) =>
  problems.filter((problem) => problem.severity === 'error');

export interface JobText {
  text: string;
  name: string;
  dialect: Dialect | null;
  cwd: string;
}

const isSame = (a: JobText, b: JobText) =>
  a.text === b.text && a.name === b.name && a.dialect === b.dialect && a.cwd === b.cwd;

export interface Check {
  /** While a change has not been read yet, what was said of the text before it. */
  checked: Checked | undefined;
  /** Of the text as it stands. Before there is one, or a directory for it, nobody is asked. */
  state: 'nothing' | 'nowhere' | 'pending' | 'wrong' | 'right' | 'failed';
  error: Error | null;
  /** Asks without waiting for the end of typing. */
  now: () => void;
}

export function useCheck(file: JobText): Check {
  const mayChange = useMayChange();
  const [asked, setAsked] = useState(file);
  const { text, name, dialect, cwd } = file;
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ text, name, dialect, cwd }), WAIT);
    return () => clearTimeout(timer);
  }, [text, name, dialect, cwd]);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ['check', asked],
    queryFn: ({ signal }) => api.check(asked, signal),
    enabled: mayChange && asked.text.trim() !== '' && asked.cwd.startsWith('/'),
    placeholderData: (before) => before,
    staleTime: 2_000,
  });
  const now = () => setAsked(file);
  const none = { checked: undefined, error: null, now };
  if (!mayChange || !text.trim()) return { ...none, state: 'nothing' };
  if (cwd && !cwd.startsWith('/')) return { ...none, state: 'nowhere' };
  const answered = isSame(asked, file) && !isPlaceholderData;
  if (answered && error) return { checked: undefined, state: 'failed', error, now };
  if (!answered || !data) return { checked: data, state: 'pending', error: null, now };
  const right = data.total > 0 && !errorsOf(data.problems).length;
  return { checked: data, state: right ? 'right' : 'wrong', error: null, now };
}

/** Where a file would lie, until somebody says: where the newest job ran. */
export function useUsualDirectory(): string {
  const { data: status } = useStatus();
  const { data } = useQuery({
    queryKey: ['usualDirectory'],
    queryFn: () => api.jobs({ order: 'desc', limit: 1 }),
    staleTime: Infinity,
  });
  const newest = data?.jobs[0];
  return (newest ? asText(newest.cwd) : '') || (status ? asText(status.instance) : '');
}
