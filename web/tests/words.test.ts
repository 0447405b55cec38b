import { describe, expect, it } from 'vitest';
import type { Cause, Obstacle } from '../src/api/types';
import { translate, type Language, type Translate } from '../src/i18n';
import {
  cardText,
  eventText,
  failureNote,
  obstacleText,
  outcomeText,
  outlookText,
  reasonText,
  told,
  waitText,
} from '../src/lib/words';
import { driverText, said } from '../src/lib/said';
import { alike } from '../src/pages/state/reason';

const speak =
  (language: Language): Translate =>
  (key, values) =>
    translate(language, key, values);
const en = speak('en');
const zh = speak('zh');

const cause = (
  kind: Cause['kind'],
  numbers: Cause['numbers'] = {},
  names: Cause['names'] = {},
  jobs: number[] = [],
): Cause => ({ kind, numbers, names, jobs });
const GIB = 1024 ** 3;

/** One of each kind, with the facts that docs/formats/api.md lists. */
const CAUSES: readonly (readonly [Cause, string])[] = [
  [cause('held'), 'held until somebody resumes it'],
  [cause('instance_paused'), 'berth is paused and starts nothing'],
  [cause('max_concurrent', {}, {}, [2]), 'job 2 goes first, and no more may run at once'],
  [
    cause('queue_limit', {}, { queue: 'q' }, [2, 3]),
    'jobs 2, 3 go first, and no more may run at once',
  ],
  [cause('due'), 'nothing stands in its way; it starts in a moment'],
  [
    cause('parked', { quiet_ms: 30_000 }, { gpus: '0, 2' }),
    'stands still for somebody else on GPU 0, 2; goes on after 30s of quiet (quiet_time)',
  ],
  [cause('delayed', { in_ms: 90_000 }), 'is to start in 1m 30s'],
  [cause('retry', { in_ms: 12_000 }), 'is tried again in 12s'],
  [
    cause('retry', { in_ms: 17_000 }, { queue: 'car' }, [1]),
    "job 1 of the serial queue 'car' goes first and is tried again in 17s",
  ],
  [cause('dependency', { jobs: 1 }, { outcome: 'ok' }, [3]), 'waits for job 3 to succeed'],
  [
    cause('dependency', { jobs: 9 }, { outcome: 'any' }, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    'waits for jobs 1, 2, 3, 4, 5 and 4 more to end',
  ],
  [
    cause('space', {}, { detail: '1 MiB left' }),
    'nothing starts while the disk is full: 1 MiB left',
  ],
  [
    cause('max_concurrent', { running: 5, limit: 4 }),
    '5 jobs run already, the limit max_concurrent is 4',
  ],
  [
    cause('submitting', { arrived: 3, total: 9 }),
    'its batch is still being submitted, 3 of 9 so far',
  ],
  [cause('submitting'), 'its batch was given up and is being removed'],
  [cause('queue_paused', {}, { queue: 'car' }), "queue 'car' is paused"],
  [
    cause('batch_limit', { running: 1, limit: 1 }),
    '1 job of its batch runs already, its limit max_concurrent is 1',
  ],
  [
    cause('queue_limit', { limit: 1 }, { queue: 'car' }),
    "queue 'car' runs 1 at a time and is busy",
  ],
  [
    cause('queue_order', { jobs: 1 }, { queue: 'car' }, [7]),
    "job 7 goes first in the serial queue 'car'",
  ],
  [cause('cpus', { asked: 4, free: 1, total: 8 }), 'asks for 4 CPUs, 1 of 8 are free'],
  [
    cause('cpus', { asked: 40, free: 1, total: 8 }),
    'asks for 40 CPUs; this machine has 8, so it can never start',
  ],
  [
    cause('memory', { asked: 4 * GIB, free: GIB, total: 8 * GIB }),
    'asks for 4 GiB of host memory, 1 GiB are not promised to other jobs',
  ],
  [
    cause('host_memory', { available: GIB, kept: 2 * GIB }),
    '1 GiB of host memory are available, 2 GiB must stay so (keep_host_memory)',
  ],
  [
    cause('resource', { asked: 2, free: 0 }, { resource: 'licence' }),
    "asks for 2 'licence', 0 free",
  ],
  [
    cause('quota', { used: 2, allowed: 2 }, { of: 'instance' }),
    '2 of the 2 GPUs that berth may use at once are in use',
  ],
  [
    cause('quota', { asked: 1, used: 1, allowed: 1 }, { of: 'batch', rules: 'max_gpu=1' }),
    'the one GPU that its batch may use at once is in use (max_gpu=1)',
  ],
  [
    cause('quota', { asked: 3, used: 0, allowed: 2 }, { of: 'batch', rules: 'max_gpu=2' }),
    'asks for 3 GPUs, and its batch may use 2 at once (max_gpu=2)',
  ],
  [
    cause('no_gpu', { asked: 2, total: 1 }),
    'asks for 2 GPUs; this machine has 1, so it can never start',
  ],
  [cause('gpu', { asked: 1, fitting: 0, possible: 1, total: 2 }), 'no GPU has room'],
  [
    cause('gpu', { asked: 3, fitting: 1, possible: 2, total: 4 }),
    'asks for 3 GPUs, 1 of 4 has room, and never will: the cards are too small',
  ],
  [cause('gpu', {}, { error: '' }), 'waiting for a fresh look at the GPUs'],
  [cause('gpu', {}, { error: 'no driver' }), 'the GPUs cannot be seen: no driver'],
  [
    cause('gpu', { gpu_left: 2 }, { gpus: '', absent: '' }),
    'the rules leave it no card: gpus=*, gpu_left=2',
  ],
];

describe('why a job waits', () => {
  it.each(CAUSES)('is worded from its facts: %o', (one, words) => {
    expect(reasonText(one, 'as the daemon says', en)).toBe(words);
    const chinese = reasonText(one, 'as the daemon says', zh);
    expect(chinese).toMatch(/[\u4e00-\u9fff]/);
    expect(chinese).not.toMatch(/[{}]/);
  });
  it('stays in the words of the daemon where facts are missing', () => {
    expect(reasonText(undefined, 'as it says', zh)).toBe('as it says');
    expect(reasonText(cause('queue_limit'), 'as it says', zh)).toBe('as it says');
    expect(reasonText(cause('gpu'), 'as it says', zh)).toBe('as it says');
    // A kind of a newer daemon.
    expect(reasonText(cause('moon' as 'due'), 'as it says', zh)).toBe('as it says');
    expect(waitText({ reason: null }, en)).toBeNull();
  });
});

describe('what has to end first', () => {
  it('is worded from its facts', () => {
    const why = { outlook: 'as it says', foreseen: { gpus: [0, 3], jobs: [11], within_ms: null } };
    expect(outlookText(why, en)).toBe('GPU 0, 3 would fit when job 11 ends');
    expect(outlookText({ ...why, foreseen: { ...why.foreseen, within_ms: 60_000 } }, zh)).toBe(
      '任务 11 结束后可用 GPU 0, 3，最迟 1m 00s 后',
    );
    expect(outlookText({ outlook: 'as it says' }, zh)).toBe('as it says');
    expect(outlookText({ outlook: null }, zh)).toBeNull();
  });
});

describe('why not this card', () => {
  const card = (kind: Obstacle['kind'], more: Partial<Obstacle> = {}): Obstacle => ({
    gpu: 0,
    kind,
    text: 'as it says',
    jobs: [],
    ...more,
  });
  it('is worded from its facts', () => {
    expect(obstacleText(card('claimed', { jobs: [3] }), en)).toBe('taken by job 3');
    expect(
      obstacleText(
        card('memory', { free: GIB, needed: 2 * GIB, jobs: [3, 4], strangers: 3 * GIB }),
        en,
      ),
    ).toBe('1 GiB free, 2 GiB needed, shared with jobs 3, 4, others hold 3 GiB');
    expect(obstacleText(card('utilization', { utilization: 90, utilization_max: 30 }), en)).toBe(
      'others keep it 90 % busy, the limit is 30 % (max_utilization)',
    );
    expect(
      obstacleText(
        card('memory', { free: GIB, needed: 7 * GIB, margin: 23 * GIB, rule: 'min_free_memory' }),
        en,
      ),
    ).toBe('1 GiB free (23 GiB kept by memory_margin), 7 GiB needed (min_free_memory)');
    expect(
      obstacleText(
        card('keep_memory', { in_use: 14 * GIB, total: 24 * GIB, detail: 'keep_gpu_memory=50' }),
        en,
      ),
    ).toBe('14 GiB of 24 GiB are in use, more than the rule keep_gpu_memory=50 allows');
    expect(obstacleText(card('trouble'), en)).toBe('as it says');
    expect(obstacleText(card('trouble'), zh)).toBe('有故障：as it says');
  });
  it('is said in Chinese, too', () => {
    const kinds: Obstacle['kind'][] = [
      'stale',
      'drained',
      'not_allowed',
      'left',
      'other_berth',
      'unknown',
      'claimed',
      'ending',
      'own_process',
      'avoided',
      'strangers',
      'quiet',
      'utilization',
      'keep_memory',
      'memory',
      'too_small',
      'held',
    ];
    for (const kind of kinds) {
      const words = obstacleText(card(kind, { jobs: [1] }), zh);
      expect(words, kind).toMatch(/[\u4e00-\u9fff]/);
      expect(words, kind).not.toMatch(/[{}]/);
    }
  });
  it('is told of a whole card as well', () => {
    const well = { trouble: null, reserved: null };
    expect(cardText(well, en)).toBeNull();
    expect(cardText({ ...well, trouble: 'it was lost' }, en)).toBe('it was lost');
    expect(cardText({ ...well, trouble: 'out of use: fan', drained_why: 'fan' }, zh)).toBe(
      '已停用：fan',
    );
    expect(
      cardText(
        {
          ...well,
          reserved: 'left to others by the rule gpu_left=1',
          reserved_kind: 'left',
          reserved_detail: 'gpu_left=1',
        },
        en,
      ),
    ).toBe('left to others by the rule gpu_left=1');
    expect(cardText({ ...well, reserved: 'as it says' }, zh)).toBe('as it says');
  });
});

describe('how an attempt ended', () => {
  it('is not said twice', () => {
    const of = (change: object, t = en) =>
      outcomeText({ failure_class: null, exit_code: null, signal: null, ...change }, 'failed', t);
    expect(of({ failure_class: 'exit', exit_code: 1 })).toBe('failed · exit 1');
    expect(of({ failure_class: 'gpu_oom', exit_code: 1 })).toBe(
      'failed · out of GPU memory · exit 1',
    );
    expect(of({ failure_class: 'exit', signal: 9 })).toBe('failed · signal 9');
    expect(of({ failure_class: 'gpu_oom', exit_code: 1 }, zh)).toContain('显存不足');
  });
  it('is noted beside the state', () => {
    const job = { state: 'failed', failure_class: 'exit', exit_code: 3 } as const;
    expect(failureNote(job, en)).toBe('exit 3');
    expect(failureNote({ ...job, failure_class: 'timeout' }, en)).toBe('time limit');
    expect(failureNote({ state: 'succeeded', failure_class: null, exit_code: 0 }, en)).toBeNull();
  });
});

describe('what happened', () => {
  it('has a name, or that of the daemon', () => {
    expect(eventText('retried', en)).toBe('to be tried again');
    expect(eventText('retried', zh)).toBe('将重试');
    expect(eventText('landed', zh)).toBe('landed');
  });
});

describe('how something ended', () => {
  const failed = { state: 'failed', failure_class: 'exit', exit_code: 2, signal: null } as const;

  it("is told in the daemon's words in English", () => {
    const message = 'exited with code 2; trying again in 10m 00s (retry 4 of 100)';
    expect(told(failed, message, 'en', en)).toEqual({ text: message, detail: null });
  });
  it('is told from facts in another language', () => {
    expect(told(failed, 'exited with code 2', 'zh', zh)).toEqual({
      text: '以退出码 2 结束',
      detail: null,
    });
    const message = 'exited with code 2; trying again in 10m 00s (retry 4 of 100)';
    expect(told(failed, message, 'zh', zh)).toEqual({
      text: '以退出码 2 结束；10m 00s 后重试第 4 次，共 100 次',
      detail: null,
    });
    expect(
      told({ ...failed, exit_code: null, signal: 9 }, 'killed by SIGKILL', 'zh', zh).text,
    ).toBe('被信号 9 终止');
  });
  it('keeps what the daemon has to say beyond them', () => {
    const message =
      'out of GPU memory: asked for 2.0 GiB with 1.0 GiB of 24 GiB free; trying again with 12 GiB';
    const oom = { ...failed, failure_class: 'gpu_oom', exit_code: 1 } as const;
    expect(told(oom, message, 'zh', zh)).toEqual({
      text: '显存不足（退出码 1）；改用 12 GiB 重试',
      detail: message,
    });
    const cancelled = { state: 'cancelled', failure_class: null, exit_code: null };
    expect(told(cancelled, 'job 3 failed', 'zh', zh).text).toBe('job 3 failed');
  });
});

describe('a card that is lost', () => {
  it('is told in the language of the page', () => {
    const lost = { trouble: 'GPU is lost', reserved: null } as Parameters<typeof cardText>[0];
    expect(cardText(lost, zh)).toContain('GPU 已丢失');
    expect(cardText({ ...lost, trouble: 'ECC' }, zh)).toBe('有故障：ECC');
  });
});

/** As the daemon says them. */
const SENTENCES = [
  'the driver reported the hardware error XID 79',
  '1 uncorrectable memory error',
  '2 uncorrectable memory errors',
  'it was lost: GPU is lost',
  'the driver no longer shows it',
  'not seen since the restart',
  'its UUID cannot be read',
  'taken out of use on request',
  'out of use: the driver reported the hardware error XID 79',
  'GPU 3 is gone',
  'GPU 3: GPU is lost',
  'the GPU driver has not answered for 10s; nothing new starts on GPUs until it does',
  'the GPU probe has died',
  "the NVIDIA driver is not loaded; load it with 'modprobe nvidia' or reboot, and see 'dmesg | grep NVRM' if that fails",
  'the NVIDIA driver was upgraded while the old kernel module is loaded (Driver/library version mismatch); reboot, or unload and load the nvidia modules',
  'no permission to use the NVIDIA driver; check the access rights of /dev/nvidia*',
  'cannot initialise NVML: Unknown Error (code 999); does nvidia-smi work?',
  '/home/a: 1.0 MiB free; nothing new starts until there are 64 MiB',
  'the rule gpus names 7, which is not there; `berth gpus` lists the cards',
  'the rule gpus names 7, 8, which are not there; `berth gpus` lists the cards',
];

describe('a sentence of the daemon', () => {
  it.each(SENTENCES)('is known: %s', (sentence) => {
    expect(said(sentence, en)).toBe(sentence);
    const chinese = said(sentence, zh);
    expect(chinese).toMatch(/[\u4e00-\u9fff]/);
    expect(chinese).not.toMatch(/[{}]/);
  });
  it('of a kind that nobody knows stays as it is', () => {
    expect(said('berth.yaml:3: a word', zh)).toBe('berth.yaml:3: a word');
    expect(said('', zh)).toBe('');
  });
  it('keeps its facts', () => {
    expect(said('GPU 3: the driver reported the hardware error XID 79', zh)).toBe(
      'GPU 3：驱动报告了硬件错误 XID 79',
    );
    expect(said('在控制台停用', en)).toBe('drained in the console');
  });
  it('tells through what the cards are seen', () => {
    const probe = { simulated: false, driver: 'none', age_ms: 1, error: null };
    expect(driverText(probe, zh)).toBe('未启用 GPU');
    expect(driverText({ ...probe, driver: 'NVML 550.54' }, zh)).toBe('NVML 550.54');
  });
});

describe('cards that the same is in the way of', () => {
  it('are told of together', () => {
    const silent = (gpu: number, text = ''): Obstacle => ({
      gpu,
      kind: text ? 'drained' : 'stale',
      text: 'as it says',
      jobs: [],
      detail: text,
    });
    expect(alike([silent(0), silent(1), silent(2, 'fan'), silent(3)], en)).toEqual([
      ['0-1,3', 'waiting for a fresh look at it'],
      ['2', 'out of use: fan'],
    ]);
  });
});
