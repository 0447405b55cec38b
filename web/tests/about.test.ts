import { describe, expect, it } from 'vitest';
import type { Job } from '../src/api/types';
import { translate, type Key } from '../src/i18n';
import { aboutText, endText, tries, waits } from '../src/pages/state/about';

const en = (key: Key, values?: Record<string, string | number>) => translate('en', key, values);
const zh = (key: Key, values?: Record<string, string | number>) => translate('zh', key, values);

const why = (kind: string) => ({ kind, numbers: {}, names: {}, jobs: [] }) as Job['why'];
const queued = {
  state: 'queued',
  message: null,
  reason: 'no GPU has room',
  why: why('order'),
  failure_class: null,
  exit_code: null,
} as const;

describe('what is said of a job in the list', () => {
  it('is why it waits, after what became of its last try', () => {
    expect(aboutText(queued, 'en', en).text).toBe('no GPU has room');
    const again = {
      ...queued,
      failure_class: 'gpu_oom',
      exit_code: 1,
      message: 'it failed',
    } as const;
    expect(aboutText(again, 'en', en).text).toBe('out of GPU memory · no GPU has room');
  });
  it('is that somebody holds it, where that is so', () => {
    const held = { ...queued, state: 'paused', reason: 'held', why: why('held') } as const;
    expect(aboutText(held, 'en', en).text).toBe('held until somebody resumes it');
    expect(waits(held)).toBe(true);
    expect(waits({ state: 'paused' })).toBe(false);
  });
  it('is how it ended, or at least of what kind that was', () => {
    const failed = { ...queued, state: 'failed', reason: null, exit_code: 3 } as const;
    expect(aboutText({ ...failed, message: 'exited with code 3' }, 'en', en).text).toBe(
      'exited with code 3',
    );
    expect(aboutText(failed, 'en', en).text).toBe('exit 3');
  });
});

describe('tries', () => {
  it('are never more than a job may have, whatever did not count', () => {
    const job = { state: 'running', attempts: 1, retries: 2, retries_used: 0 } as const;
    expect(tries(job)).toBe(3);
    expect(tries({ ...job, state: 'queued', attempts: 0 })).toBe(3);
    expect(tries({ ...job, state: 'queued', attempts: 6, retries_used: 2 })).toBe(7);
    expect(tries({ ...job, state: 'failed', attempts: 6, retries_used: 2 })).toBe(6);
  });
});

describe('how a job ended', () => {
  const failed = { state: 'failed', failure_class: 'exit', exit_code: 2, signal: null } as const;
  const message = 'exited with code 2; trying again elsewhere in 10m 00s (retry 1 of 2)';

  it('is said of one that waits again as what was before, without what was to come of it', () => {
    const again = { ...failed, state: 'queued', message } as const;
    expect(endText(again, 'en', en).text).toBe('Previous attempt: exited with code 2');
    expect(endText(again, 'zh', zh).text).toBe('上一次执行：以退出码 2 结束');
    expect(endText({ ...again, message: null }, 'en', en).text).toBeNull();
  });
  it('is said as it is of one that has ended', () => {
    const last = 'exited with code 2; no retry left after 2';
    expect(endText({ ...failed, message: last }, 'en', en).text).toBe(last);
  });
});
