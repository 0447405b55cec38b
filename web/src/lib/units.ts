// Sizes and times as they are written; the same forms, and exactly the same values, as src/base/units.cpp reads.

type Units = readonly (readonly [factor: bigint, names: readonly string[]])[];
const byName = (units: Units) =>
  new Map(units.flatMap(([factor, names]) => names.map((name) => [name, factor] as const)));

const SIZES = byName([
  [1n, ['b', 'byte', 'bytes']],
  ...['k', 'm', 'g', 't', 'p'].flatMap((letter, i): Units => {
    const power = BigInt(i + 1);
    return [
      [1000n ** power, [`${letter}b`]],
      [1024n ** power, [letter, `${letter}i`, `${letter}ib`]],
    ];
  }),
]);

const SECOND = 1000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;
const TIMES = byName([
  [1n, ['ms', 'msec', 'millisecond', 'milliseconds']],
  [SECOND, ['s', 'sec', 'secs', 'second', 'seconds']],
  [MINUTE, ['m', 'min', 'mins', 'minute', 'minutes']],
  [HOUR, ['h', 'hr', 'hrs', 'hour', 'hours']],
  [DAY, ['d', 'day', 'days']],
  [7n * DAY, ['w', 'week', 'weeks']],
]);

const MOST_BYTES = 2n ** 64n - 1n;
const MOST_MILLIS = 2n ** 63n - 1n;

/** Digits, and those behind a point. `1.` is a slip. */
const NUMBER = String.raw`(\d+(?:\.\d+)?|\.\d+)`;

const trimmed = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '');

/** Rounded down, however many digits there are. */
function times(number: string, factor: bigint): bigint {
  const [whole = '', fraction = ''] = number.split('.');
  return (BigInt(whole + fraction) * factor) / 10n ** BigInt(fraction.length);
}

const within = (value: bigint, most: bigint) => (value <= most ? value : undefined);

/** 8GiB, 1.5 GB, 512M; a bare number is bytes. Undefined: that is no size. */
export function parseSize(text: string): bigint | undefined {
  const [, number = '', unit = ''] =
    new RegExp(`^${NUMBER}[ \\t]*([a-z]*)$`, 'i').exec(trimmed(text)) ?? [];
  const factor = SIZES.get(unit.toLowerCase() || 'b');
  if (!number || factor === undefined) return undefined;
  if (!unit && number.includes('.')) return undefined;
  return within(times(number, factor), MOST_BYTES);
}

/** HH:MM:SS, and with days D-HH, D-HH:MM, D-HH:MM:SS. */
function parseClock(text: string): bigint | undefined {
  const [, days, hours = '', minutes, seconds] =
    /^(?:(\d+)-)?(\d+)(?::(\d\d))?(?::(\d\d))?$/.exec(text) ?? [];
  if (!hours || (days === undefined && seconds === undefined)) return undefined;
  if (days !== undefined && (hours.length > 2 || Number(hours) > 23)) return undefined;
  if (Number(minutes ?? 0) > 59 || Number(seconds ?? 0) > 59) return undefined;
  const part = (digits: string | undefined, factor: bigint) => BigInt(digits ?? 0) * factor;
  return part(days, DAY) + part(hours, HOUR) + part(minutes, MINUTE) + part(seconds, SECOND);
}

/** Parts from large to small, each unit once. */
function sum(parts: readonly (readonly [number: string, unit: string])[]): bigint | undefined {
  let total = 0n;
  let before: bigint | undefined;
  for (const [number, unit] of parts) {
    const factor = TIMES.get(unit.toLowerCase());
    if (factor === undefined || (before !== undefined && factor >= before)) return undefined;
    total += times(number, factor);
    before = factor;
  }
  return parts.length ? total : undefined;
}

const partsOf = (text: string, part: RegExp) =>
  [...text.matchAll(part)].map(([, number = '', unit = '']) => [number, unit] as const);

/** ISO 8601: PT2H30M, P1DT12H, P2W. Years and months have no fixed length. */
function parseIso(text: string): bigint | undefined {
  const form = new RegExp(`^p((?:${NUMBER}[wd])*)(?:t((?:${NUMBER}[hms])+))?$`, 'i').exec(text);
  return form ? sum(partsOf(text, new RegExp(`${NUMBER}([wdhms])`, 'gi'))) : undefined;
}

/** 90s, 2h 30m, 1.5h, 2 days; a bare number is seconds. */
function parseWords(text: string): bigint | undefined {
  if (new RegExp(`^${NUMBER}$`).test(text)) return times(text, SECOND);
  const part = `${NUMBER}[ \\t]*([a-z]+)[ \\t]*`;
  if (!new RegExp(`^(?:${part})+$`, 'i').test(text)) return undefined;
  return sum(partsOf(text, new RegExp(part, 'gi')));
}

/** Milliseconds. Undefined: that is no time. */
export function parseTime(text: string): bigint | undefined {
  const time = trimmed(text);
  const parse = /[:-]/.test(time) ? parseClock : /^p/i.test(time) ? parseIso : parseWords;
  const millis = parse(time);
  return millis === undefined ? undefined : within(millis, MOST_MILLIS);
}
