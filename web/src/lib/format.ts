// Numbers as people read them.

import type { Bytes } from '../api/types';

const KIB = 1024;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let amount = value;
  let unit = 0;
  while (amount >= KIB && unit < units.length - 1) {
    amount /= KIB;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 || Number.isInteger(amount) ? 0 : 1;
  return `${amount.toFixed(digits)} ${units[unit]}`;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The two greatest units: 3d 4h, 5m 02s, 12s, 40ms. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  const value = Math.max(0, ms);
  const two = (n: number) => String(Math.floor(n)).padStart(2, '0');
  if (value < SECOND) return `${Math.round(value)}ms`;
  if (value < 10 * SECOND) return `${(value / SECOND).toFixed(1)}s`;
  if (value < MINUTE) return `${Math.floor(value / SECOND)}s`;
  if (value < HOUR) return `${Math.floor(value / MINUTE)}m ${two((value % MINUTE) / SECOND)}s`;
  if (value < DAY) return `${Math.floor(value / HOUR)}h ${two((value % HOUR) / MINUTE)}m`;
  return `${Math.floor(value / DAY)}d ${Math.floor((value % DAY) / HOUR)}h`;
}

const locale = (language: string) => (language === 'zh' ? 'zh-CN' : 'en-GB');
const HOUR_AND_MINUTE = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const DAY_AND_MONTH = { month: 'short', day: 'numeric' } as const;

/** As much of the day as is not plain: none of today, the year of another one. */
function dayOf(date: Date): Intl.DateTimeFormatOptions {
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return {};
  return date.getFullYear() === now.getFullYear()
    ? DAY_AND_MONTH
    : { ...DAY_AND_MONTH, year: 'numeric' };
}

/** To the second, with the day if that is not today. */
export function clock(ms: number | null | undefined, language: string): string {
  if (!ms) return '–';
  const date = new Date(ms);
  return new Intl.DateTimeFormat(locale(language), {
    ...dayOf(date),
    ...HOUR_AND_MINUTE,
    second: '2-digit',
  }).format(date);
}

/** To the minute, for where there is little room. */
export function moment(ms: number, language: string): string {
  const date = new Date(ms);
  return new Intl.DateTimeFormat(locale(language), { ...dayOf(date), ...HOUR_AND_MINUTE }).format(
    date,
  );
}

/** The hour where that says which day, else the day, for a column of a table. */
export function shortly(ms: number, language: string): string {
  const date = new Date(ms);
  return new Intl.DateTimeFormat(
    locale(language),
    Date.now() - ms < DAY ? HOUR_AND_MINUTE : dayOf(date),
  ).format(date);
}

/** For an axis over `span` milliseconds: as fine as it has to be. */
export function tick(ms: number, span: number, language: string): string {
  return new Intl.DateTimeFormat(locale(language), {
    ...(span > 36 * HOUR ? DAY_AND_MONTH : {}),
    ...HOUR_AND_MINUTE,
    ...(span <= 20 * MINUTE ? { second: '2-digit' } : {}),
  }).format(new Date(ms));
}

export function count(value: number, language: string): string {
  return new Intl.NumberFormat(locale(language)).format(value);
}

/** Bytes that are no text are shown with what cannot be read replaced. */
export function text(value: Bytes | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  const raw = Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(raw);
}

export function timeText(ms: number): string {
  if (ms % DAY === 0) return `${ms / DAY}d`;
  if (ms % HOUR === 0) return `${ms / HOUR}h`;
  if (ms % MINUTE === 0) return `${ms / MINUTE}m`;
  return ms % SECOND === 0 ? `${ms / SECOND}s` : `${ms}ms`;
}
