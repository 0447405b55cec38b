import { useVirtualizer } from '@tanstack/react-virtual';
import {
  ArrowDownToLine,
  ChevronDown,
  ChevronUp,
  Download,
  Search,
  TriangleAlert,
  WrapText,
} from 'lucide-react';
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type CSSProperties,
} from 'react';
import { target } from '../../api/client';
import { useLanguage } from '../../i18n';
import { ink, type Style } from '../../lib/ansi';
import { bytes, count } from '../../lib/format';
import { leaves, useKeys } from '../../lib/keys';
import { useRemembered } from '../../lib/store';
import { IconButton, Skeleton } from '../../ui/basic';
import { useOverlays } from '../../ui/overlay';
import { LINES_HELD, LOG_HELD, highlight, type LogModel } from './logmodel';
import { useLog, type LogState } from './uselog';

const LINE = 19;
/** A log grows while one scrolls to where its end was. */
const NEAR_END = 3 * LINE;
const UPWARDS: readonly string[] = ['ArrowUp', 'PageUp', 'Home'];

function css(style: Style): CSSProperties | undefined {
  const out: CSSProperties = {};
  const colour = ink(style);
  if (colour) out.color = colour;
  if (style.bg) out.backgroundColor = style.bg;
  if (style.bold) out.fontWeight = 650;
  if (style.dim) out.opacity = 0.75;
  if (style.italic) out.fontStyle = 'italic';
  if (style.underline) out.textDecoration = 'underline';
  return Object.keys(out).length ? out : undefined;
}

function LineText({
  model,
  index,
  wanted,
  now,
}: {
  model: LogModel;
  index: number;
  wanted: string;
  now: boolean;
}) {
  const { t, language } = useLanguage();
  const { pieces, more } = model.shown(index);
  return (
    <>
      {pieces.flatMap((piece, i) =>
        highlight(piece, wanted).map((part, j) =>
          part.mark ? (
            <mark key={`${i}-${j}`} className={now ? 'now' : ''}>
              {part.text}
            </mark>
          ) : (
            <span key={`${i}-${j}`} style={css(part.style)}>
              {part.text}
            </span>
          ),
        ),
      )}
      {more > 0 && <em className="log-more">{t('log.more', { count: count(more, language) })}</em>}
    </>
  );
}

export function Log({ job, attempt, running }: { job: number; attempt: number; running: boolean }) {
  const state = useLog(job, attempt, running);
  const href = target(`/api/jobs/${job}/log`, { attempt, download: 1 });
  return <LogView {...state} running={running} href={href} />;
}

export function LogView({
  model,
  version,
  loading,
  error,
  running,
  href,
}: LogState & {
  /** It may grow. */
  running: boolean;
  /** Where all of it can be had; null: nowhere. */
  href: string | null;
}) {
  const { t, language } = useLanguage();
  const { say } = useOverlays();
  const [wrap, setWrap] = useRemembered<'yes' | 'no'>('berth.log.wrap', 'no');
  const [wanted, setWanted] = useState('');
  /** The line of the match that was gone to. */
  const [hitLine, setHitLine] = useState<number | null>(null);
  const [follow, setFollow] = useState(running);
  const [flash, setFlash] = useState<number | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the model is the same object, the version tells
  const found = useMemo(() => model.find(wanted), [model, wanted, version]);
  const hits = useMemo(() => new Set(found), [found]);
  const hit = Math.max(0, hitLine === null ? 0 : found.indexOf(hitLine));
  const { dropped } = model;
  const virtual = useVirtualizer({
    count: model.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE,
    overscan: 30,
    // What was measured of a line is kept when those before it go.
    getItemKey: useCallback((index: number) => dropped + index, [dropped]),
  });
  useEffect(() => virtual.measure(), [wrap, virtual]);
  const seen = useRef({ top: 0, height: 0, line: 0, into: 0 });
  // Whoever reads goes on reading where the front of a long log goes.
  useLayoutEffect(() => {
    const { line, into } = seen.current;
    if (dropped === 0 || !scroller.current) return;
    const start = virtual.measurementsCache[line - dropped]?.start;
    scroller.current.scrollTop = start === undefined ? 0 : start + into;
  }, [dropped, virtual]);
  /** Wheel, finger, key or scrollbar: who goes up wants to read, who goes to the end wants to follow. */
  const scrolled = ({ scrollHeight, scrollTop, clientHeight }: HTMLElement) => {
    const end = scrollHeight - clientHeight;
    const top = Math.min(scrollTop, end);
    const before = seen.current;
    const first = virtual.getVirtualItemForOffset(top);
    seen.current = {
      top,
      height: scrollHeight,
      line: dropped + (first?.index ?? 0),
      into: top - (first?.start ?? 0),
    };
    // Lines that have become shorter move the end up by themselves.
    if (top < before.top && scrollHeight >= before.height) setFollow(false);
    else if (running && top > before.top && end - top < NEAR_END) setFollow(true);
  };
  useEffect(() => {
    if (follow && model.count) virtual.scrollToIndex(model.count - 1, { align: 'end' });
  }, [follow, version, model, virtual]);

  const show = (line: number) => {
    setFollow(false);
    setFlash(line);
    virtual.scrollToIndex(line - dropped, { align: 'center' });
  };
  const step = (by: number) => {
    if (!found.length) return;
    const next = found[(hit + by + found.length) % found.length] ?? dropped;
    setHitLine(next);
    show(next);
  };
  // Nobody knows how many lines are before what is held, nor what is in them.
  const cut = model.begin > 0;
  const error1 = () => {
    const at = model.firstError();
    if (at === null) say(t(cut ? 'log.noErrorShown' : 'log.noError'));
    else show(at);
  };
  useKeys({
    n: () => step(1),
    N: () => step(-1),
    e: error1,
    w: () => setWrap(wrap === 'yes' ? 'no' : 'yes'),
    f: () => setFollow((on) => !on),
  });

  return (
    <section className="log" aria-label={t('log.title')}>
      <div className="log-bar">
        <div className="search">
          <Search size={14} aria-hidden />
          <input
            data-search
            type="search"
            aria-label={t('log.search')}
            placeholder={t('log.search')}
            value={wanted}
            onChange={(event) => {
              setWanted(event.target.value);
              const first = model.find(event.target.value)[0];
              setHitLine(first ?? null);
              if (first !== undefined) show(first);
            }}
            onKeyDown={(event) => {
              if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
              leaves(event, scroller.current);
            }}
          />
          {wanted && (
            <span className="muted nowrap" role="status">
              {found.length ? `${hit + 1} / ${count(found.length, language)}` : t('log.none')}
            </span>
          )}
        </div>
        <IconButton
          icon={ChevronUp}
          label={t('help.previous')}
          onClick={() => step(-1)}
          disabled={!found.length}
        />
        <IconButton
          icon={ChevronDown}
          label={t('help.next')}
          onClick={() => step(1)}
          disabled={!found.length}
        />
        <IconButton
          icon={TriangleAlert}
          label={t(cut ? 'log.errorShown' : 'help.error')}
          onClick={error1}
        />
        <IconButton
          icon={WrapText}
          label={t('help.wrap')}
          aria-pressed={wrap === 'yes'}
          onClick={() => setWrap(wrap === 'yes' ? 'no' : 'yes')}
        />
        <IconButton
          icon={ArrowDownToLine}
          label={t('help.follow')}
          aria-pressed={follow}
          onClick={() => setFollow(!follow)}
        />
        {href !== null && (
          <a
            className="icon-button"
            href={href}
            download
            aria-label={t('log.download')}
            title={t('log.download')}
          >
            <Download size={16} aria-hidden />
          </a>
        )}
      </div>
      {cut && (
        <p className="log-note">
          {t('log.cut', { shown: bytes(LOG_HELD), lines: count(LINES_HELD, language) })}{' '}
          {href !== null && <a href={href}>{t('log.download')}</a>}
        </p>
      )}
      {loading && <Skeleton rows={5} />}
      {error && <p className="log-note">{error}</p>}
      {!loading && !error && model.count === 0 && (
        <p className="log-note">{t(running ? 'log.nothingYet' : 'log.nothing')}</p>
      )}
      <div
        ref={scroller}
        className={`log-lines ${wrap === 'yes' ? 'wrap' : ''} ${cut ? 'cut' : ''}`}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t('log.title')}
        onKeyDown={({ key }) => {
          if (key === 'End' && running) setFollow(true);
          // Lines that come could overtake the way that a key begins to scroll.
          if (UPWARDS.includes(key)) setFollow(false);
        }}
        onScroll={(event) => scrolled(event.currentTarget)}
      >
        <div className="log-inner" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ key, index, start }) => {
            const line = dropped + index;
            return (
              <div
                key={key}
                ref={wrap === 'yes' ? virtual.measureElement : undefined}
                data-index={index}
                className={`log-line ${flash === line ? 'flash' : ''}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                {!cut && (
                  <span className="log-number" aria-hidden>
                    {line + 1}
                  </span>
                )}
                <span className="log-text">
                  <LineText
                    model={model}
                    index={index}
                    wanted={hits.has(line) ? wanted : ''}
                    now={found[hit] === line}
                  />
                </span>
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}
