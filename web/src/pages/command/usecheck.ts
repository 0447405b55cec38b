// What the daemon's own parsers say of a text, shortly after somebody has stopped typing.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api } from '../../api/client';
import { useMayChange, useStatus } from '../../api/data';
import type { Dialect } from '../../api/types';
import { text as asText } from '../../lib/format';

const WAIT = 300;

export interface JobText {
  text: string;
  name: string;
  dialect: Dialect | null;
  cwd: string;
}

export function useCheck(file: JobText) {
  const mayChange = useMayChange();
  const [asked, setAsked] = useState(file);
  const { text, name, dialect, cwd } = file;
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ text, name, dialect, cwd }), WAIT);
    return () => clearTimeout(timer);
  }, [text, name, dialect, cwd]);
  return useQuery({
    queryKey: ['check', asked],
    queryFn: ({ signal }) => api.check(asked, signal),
    enabled: mayChange && asked.text.trim() !== '' && asked.cwd.startsWith('/'),
    placeholderData: (before) => before,
    staleTime: 2_000,
  });
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
