// A log for a page: as it is, and as it grows.

import { useEffect, useMemo, useState } from 'react';
import { useLive } from '../../api/data';
import { useAttended } from '../../lib/attention';
import type { LogModel } from './logmodel';
import { LogReader } from './logreader';

export interface LogState {
  model: LogModel;
  /** Changes whenever the model does. */
  version: number;
  loading: boolean;
  error: string | null;
}

/** So many logs are held when nobody looks at them: each is as long as a log may be here. */
const KEPT = 3;
/** What was read of a log is there when somebody comes back to it, whether the daemon is or not. */
const readers = new Map<string, LogReader>();

function readerOf(job: number, attempt: number): LogReader {
  const name = `${job}.${attempt}`;
  const reader = readers.get(name) ?? new LogReader(job, attempt);
  // The one that was looked at last stays longest.
  readers.delete(name);
  readers.set(name, reader);
  const [oldest] = readers.keys();
  if (readers.size > KEPT && oldest !== undefined) readers.delete(oldest);
  return reader;
}

export function useLog(job: number, attempt: number, running: boolean): LogState {
  const [version, setVersion] = useState(0);
  const looked = useAttended();
  const gone = useLive().link === 'gone';
  const reader = useMemo(() => readerOf(job, attempt), [job, attempt]);
  useEffect(() => {
    let frame = 0;
    const unwatch = reader.watch(() => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion((before) => before + 1);
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      unwatch();
    };
  }, [reader]);
  useEffect(() => reader.tell({ running, looked, gone }), [reader, running, looked, gone]);
  const { model, loading, error } = reader;
  return { model, version, loading, error };
}
