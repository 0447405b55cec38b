// Reads a log and follows it while its attempt runs. Whatever comes in between, the link or the page that is hidden,
// it goes on where it was.

import { ApiError, logIsEmpty, logPart, target } from '../../api/client';
import { LOG_HELD, LogModel } from './logmodel';

const POLL = 1_000;

interface Piece {
  attempt: number;
  offset: number;
  text: string;
}

export interface Situation {
  /** The attempt has not ended. */
  running: boolean;
  /** Somebody looks at the page. */
  looked: boolean;
  /** The daemon is gone. */
  gone: boolean;
}

export class LogReader {
  readonly model = new LogModel();
  loading = true;
  error: string | null = null;
  private loaded = false;
  private asking: AbortController | null = null;
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** A stream that is refused is not asked for again. */
  private refused = false;
  /** Null: nobody reads. */
  private now: Situation | null = null;

  private watcher: (() => void) | null = null;

  constructor(
    private readonly job: number,
    private readonly attempt: number,
  ) {}

  /** Whoever shows it is told of every change, until what this gives is called: nobody reads then. */
  watch(watcher: () => void): () => void {
    this.watcher = watcher;
    return () => {
      this.watcher = null;
      this.stop();
    };
  }

  private changed(): void {
    this.watcher?.();
  }

  /**
   * How things are: it reads when that is told for the first time, and goes on when they are well again. What it
   * has is shown without a daemon, too.
   */
  tell(now: Situation): void {
    const before = this.now;
    this.now = now;
    if (!before) {
      if (!this.loaded || !now.gone) void this.read();
    } else if (now.gone || !now.looked) {
      this.rest();
      this.refused = false;
    } else if (before.gone || !before.looked || before.running !== now.running) {
      void this.read();
    }
  }

  stop(): void {
    this.now = null;
    this.rest();
  }

  private rest(): void {
    this.asking?.abort();
    this.asking = null;
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
  }

  /** What there is, from where it was left; then what comes. */
  private async read(): Promise<void> {
    this.rest();
    const asking = new AbortController();
    this.asking = asking;
    let error: unknown = null;
    try {
      await (this.loaded ? this.more(asking.signal) : this.load(asking.signal));
    } catch (cause) {
      error = cause;
    }
    const { now } = this;
    if (asking.signal.aborted || !now) return;
    // The first line makes the file.
    const awaited = error instanceof ApiError && error.status === 404 && now.running;
    const passes = error instanceof ApiError && error.gone;
    this.error = error && !awaited && !(passes && this.loaded) ? (error as Error).message : null;
    this.loading = false;
    this.changed();
    if (!now.looked || now.gone) return;
    if (now.running && !error && !this.refused) this.follow();
    else if (now.running || passes) this.timer = setTimeout(() => void this.read(), POLL);
  }

  private async load(signal: AbortSignal): Promise<void> {
    const empty = await logIsEmpty(this.job, this.attempt, signal);
    const part = empty ? null : await logPart(this.job, this.attempt, -LOG_HELD, signal);
    if (signal.aborted) return;
    this.loaded = true;
    if (!part) return;
    // The first line is cut where the part begins in the middle of the file.
    const cut = part.begin > 0 ? part.bytes.indexOf(10) + 1 : 0;
    this.model.begin = part.begin + cut;
    this.model.offset = part.begin + cut;
    this.model.appendBytes(part.bytes.subarray(cut));
  }

  private async more(signal: AbortSignal): Promise<void> {
    const part = await logPart(this.job, this.attempt, this.model.offset, signal);
    if (part && !signal.aborted) this.model.appendBytes(part.bytes);
  }

  private follow(): void {
    const { job, attempt, model } = this;
    const source = new EventSource(
      target(`/api/jobs/${job}/log/stream`, { attempt, offset: model.offset }),
    );
    this.source = source;
    let opened = false;
    source.onopen = () => {
      opened = true;
    };
    source.addEventListener('log', (message: MessageEvent<string>) => {
      const piece = JSON.parse(message.data) as Piece;
      if (piece.attempt !== attempt || piece.offset <= model.offset) return;
      model.offset = piece.offset;
      model.append(piece.text);
      this.changed();
    });
    source.addEventListener('attempt', () => source.close());
    source.addEventListener('end', () => source.close());
    source.onerror = () => {
      // One that breaks off comes back by itself and goes on where it was; one that is refused does not.
      if (opened && source.readyState !== EventSource.CLOSED) return;
      source.close();
      this.refused = true;
      void this.read();
    };
  }
}
