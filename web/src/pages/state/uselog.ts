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

export function useLog(job: number, attempt: number, running: boolean): LogState {
  const [version, setVersion] = useState(0);
  const looked = useAttended();
  const gone = useLive().link === 'gone';
  const reader = useMemo(() => {
    let frame = 0;
    return new LogReader(job, attempt, () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion((before) => before + 1);
      });
    });
  }, [job, attempt]);
  useEffect(() => reader.tell({ running, looked, gone }), [reader, running, looked, gone]);
  useEffect(() => () => reader.stop(), [reader]);
  const { model, loading, error } = reader;
  return { model, version, loading, error };
}
