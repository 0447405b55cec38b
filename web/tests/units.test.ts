import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSize, parseTime } from '../src/lib/units';

const KIB = 1024n;
const MIB = KIB ** 2n;
const GIB = KIB ** 3n;
const TIB = KIB ** 4n;

const SIZES: Record<string, bigint> = {
  '0': 0n,
  '1024': 1024n,
  '8GiB': 8n * GIB,
  '8G': 8n * GIB,
  '8g': 8n * GIB,
  '8 GiB': 8n * GIB,
  '8Gi': 8n * GIB,
  '8gb': 8_000_000_000n,
  '8000MiB': 8000n * MIB,
  '1.5TB': 1_500_000_000_000n,
  '0GiB': 0n,
  '8000 MB': 8_000_000_000n,
  '8GB': 8_000_000_000n,
  '512M': 512n * MIB,
  '1.5 gib': GIB + GIB / 2n,
  '.5G': GIB / 2n,
  ' 4k ': 4096n,
  '\t3 KiB': 3072n,
  '2TiB': 2n * TIB,
  '1TB': 1_000_000_000_000n,
  '1PiB': 1024n * TIB,
  '7 bytes': 7n,
  '0.3333333333333333333333K': 341n,
  '00012M': 12n * MIB,
  '18446744073709551615': 2n ** 64n - 1n,
  '16383PiB': 16383n * 1024n * TIB,
};

const TIMES: Record<string, bigint> = {
  '0': 0n,
  '90': 90_000n,
  '0.25': 250n,
  '90s': 90_000n,
  '250ms': 250n,
  '15 min': 900_000n,
  '2h30m': 9_000_000n,
  '2h 30m 5s': 9_005_000n,
  '1.5h': 5_400_000n,
  '1H': 3_600_000n,
  '2 days': 172_800_000n,
  '1w2d': 777_600_000n,
  '01:30:00': 5_400_000n,
  '100:00:01': 360_001_000n,
  ' 3m 20s ': 200_000n,
  '90 s': 90_000n,
  '2h 30m': 9_000_000n,
  '2 hours': 7_200_000n,
  '2 h 30 min': 9_000_000n,
  '1d': 86_400_000n,
  '1w': 604_800_000n,
  '1:30:00': 5_400_000n,
  '1-12:00:00': 129_600_000n,
  '1-12:30': 131_400_000n,
  '7-0': 604_800_000n,
  '0-00:00:01': 1_000n,
  PT2H30M: 9_000_000n,
  'PT0.5S': 500n,
  P1DT12H: 129_600_000n,
  p2w: 1_209_600_000n,
  P1D: 86_400_000n,
  '9223372036854775807ms': 2n ** 63n - 1n,
};

/** What the command line is tested with. */
const theirs = readFileSync(
  path.resolve(import.meta.dirname, '../../tests/unit/base/units_test.cpp'),
  'utf8',
);
function casesOf(suite: string, kind: string): string[] {
  const [, table = ''] = new RegExp(`_P\\(\\w+, ${suite},([^;]*);`).exec(theirs) ?? [];
  return [...table.matchAll(new RegExp(`${kind}\\{("[^"]*")`, 'g'))].map(
    ([, text = '""']) => JSON.parse(text) as string,
  );
}

describe('sizes and times', () => {
  it('are read as the command line reads them', () => {
    for (const [text, value] of Object.entries(SIZES)) expect(parseSize(text), text).toBe(value);
    for (const [text, value] of Object.entries(TIMES)) expect(parseTime(text), text).toBe(value);
  });
  it('are all those that the command line is tested with', () => {
    expect(casesOf('ParseSize', 'SizeCase').sort()).toEqual(Object.keys(SIZES).sort());
    expect(casesOf('ParseDuration', 'DurationCase').sort()).toEqual(Object.keys(TIMES).sort());
  });
  it('are refused where the command line refuses them', () => {
    const sizes = casesOf('RefuseSize', 'BadCase');
    const times = casesOf('RefuseDuration', 'BadCase');
    expect(Math.min(sizes.length, times.length)).toBeGreaterThan(15);
    for (const text of sizes) expect(parseSize(text), text).toBeUndefined();
    for (const text of times) expect(parseTime(text), text).toBeUndefined();
  });
});
