// Loads a log and follows it while the attempt runs.

import { useEffect, useRef, useState } from 'react';
import { ApiError, logIsEmpty, logPart, target } from '../../api/client';
import { LogModel } from './logmodel';

/** More than this of a log is not held in the browser; the file can be downloaded. */
export const LOG_HELD = 8 * 1024 * 1024;
const POLL = 1_000;

export interface LogState {
  model: LogModel;
  /** Changes whenever the model does. */
  version: number;
  loading: boolean;
  error: string | null;
}

interface Piece {
  attempt: number;
  offset: number;
  text: string;
}

export function useLog(job: number, attempt: number, running: boolean): LogState {
  const model = useRef(new LogModel());
  const [version, setVersion] = useState(0);
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    const mine = new LogModel();
    model.current = mine;
    const stop = new AbortController();
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | null = null;
    let frame = 0;
    setLoading(true);
    setError(null);
    const changed = () => {
      if (!frame) {
        frame = requestAnimationFrame(() => {
          frame = 0;
          setVersion((before) => before + 1);
        });
      }
    };

    const more = async () => {
      const part = await logPart(job, attempt, mine.offset, stop.signal);
      if (!part || stop.signal.aborted) return;
      mine.appendBytes(part.bytes);
      changed();
    };
    const poll = () => {
      timer = setTimeout(() => {
        void more()
          .catch(() => undefined)
          .then(() => !stop.signal.aborted && poll());
      }, POLL);
    };
    const follow = () => {
      source = new EventSource(
        target(`/api/jobs/${job}/log/stream`, { attempt, offset: mine.offset }),
      );
      let opened = false;
      source.onopen = () => {
        opened = true;
      };
      source.addEventListener('log', (message: MessageEvent<string>) => {
        const piece = JSON.parse(message.data) as Piece;
        if (piece.attempt !== attempt || piece.offset <= mine.offset) return;
        mine.offset = piece.offset;
        mine.append(piece.text);
        changed();
      });
      source.addEventListener('attempt', () => source?.close());
      source.addEventListener('end', () => source?.close());
      source.onerror = () => {
        // One that breaks off comes back by itself and goes on where it was; one that is refused does not.
        if (opened && source?.readyState !== EventSource.CLOSED) return;
        source?.close();
        poll();
      };
    };

    const load = async () => {
      const empty = await logIsEmpty(job, attempt, stop.signal);
      const part = empty ? null : await logPart(job, attempt, -LOG_HELD, stop.signal);
      if (stop.signal.aborted) return;
      if (part) {
        mine.begin = part.begin;
        mine.offset = part.begin;
        // The first line is cut where the part begins in the middle of the file.
        const cut = part.begin > 0 ? part.bytes.indexOf(10) + 1 : 0;
        mine.offset += cut;
        mine.appendBytes(part.bytes.subarray(cut));
      }
      setLoading(false);
      changed();
      if (running) follow();
    };
    load().catch((cause: unknown) => {
      if (stop.signal.aborted) return;
      setLoading(false);
      const missing = cause instanceof ApiError && cause.status === 404;
      setError(missing && running ? null : (cause as Error).message);
      if (running) poll();
    });
    return () => {
      stop.abort();
      source?.close();
      if (timer) clearTimeout(timer);
      if (frame) cancelAnimationFrame(frame);
    };
  }, [job, attempt, running]);

  return { model: model.current, version, loading, error };
}
