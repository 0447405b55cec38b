import { describe, expect, it, vi } from 'vitest';
import { paced } from '../src/lib/pace';
import { markOf } from '../src/pages/gpu/card';
import { freeOf } from '../src/pages/gpu/page';
import { niceTicks, shortNumber } from '../src/pages/results/plot';
import { fitting } from '../src/pages/state/timeline';
import type { Gpu, GpuProcess, JobDetail, Results, Rule, Span } from '../src/api/types';
import { telling } from '../src/pages/command/telling';
import {
  fieldAt,
  scalar,
  sweepFile,
  unfilled,
  unused,
  valuesOf,
} from '../src/pages/command/sweepfile';
import { splitMemory } from '../src/pages/gpu/memory';
import { csv, plotPoints } from '../src/pages/results/export';
import { choices, grouped, groupOf } from '../src/pages/rule/groups';
import { apiFilter, formatFilter, parseFilter } from '../src/pages/state/filter';
import { lanes } from '../src/pages/state/lanes';
import { LONGEST, LogModel, highlight } from '../src/pages/state/logmodel';
import { waitsOnPurpose, waysBack } from '../src/pages/state/actions';
import { NOTHING } from '../src/pages/state/kept';
import { check, draftOf, specOf } from '../src/pages/state/spec';
import { rangeParts } from '../src/api/client';
import { sparkParts } from '../src/ui/spark';

describe('the filter in the address', () => {
  it('survives the way there and back', () => {
    const text = 'state=failed%2Ckilled&queue=car&q=lr&order=asc&view=timeline';
    expect(formatFilter(parseFilter(text))).toBe(text);
    for (const sorted of ['sort=priority', 'sort=priority&order=desc', 'sort=ended&order=asc']) {
      expect(formatFilter(parseFilter(sorted))).toBe(sorted);
    }
    expect(parseFilter('sort=priority').order).toBe('asc');
    expect(parseFilter('sort=ended').order).toBe('desc');
  });
  it('ignores what nobody knows', () => {
    expect(parseFilter('state=lost,failed&batch=x&view=map&sort=mood&order=up')).toMatchObject({
      sort: 'id',
      order: 'desc',
      states: ['failed'],
      batch: '',
      view: 'jobs',
    });
  });
  it('asks the daemon for what it shows', () => {
    expect(apiFilter(parseFilter('state=failed&batch=7'))).toEqual({
      state: 'failed',
      batch: 7,
      order: 'desc',
    });
  });
});

const gpu = (change: Partial<Gpu>): Gpu =>
  ({
    index: 0,
    uuid: 'u',
    memory_total: 100,
    memory_used: 0,
    processes: [],
    claims: [],
    ...change,
  }) as Gpu;

const process = (change: Partial<GpuProcess>): GpuProcess => ({
  pid: 1,
  uid: 0,
  user: null,
  name: 'a',
  command: null,
  since: null,
  memory: null,
  job: null,
  attempt: null,
  ...change,
});

describe('the memory of a card', () => {
  it('is split into own, strangers, promised and free', () => {
    expect(
      splitMemory(
        gpu({
          memory_used: 50,
          processes: [
            process({ pid: 1, memory: 30, job: 1, attempt: 1 }),
            process({ pid: 2, memory: 20 }),
          ],
          claims: [{ job: 1, attempt: 1, memory: 40 }],
        }),
      ),
    ).toEqual({ own: 30, foreign: 20, unknown: 0, claimed: 10, free: 40, total: 100 });
  });
  it('is promised to each job for itself', () => {
    const split = splitMemory(
      gpu({
        memory_used: 40,
        processes: [
          process({ pid: 1, memory: 25, job: 1, attempt: 1 }),
          process({ pid: 2, memory: 10, job: 1, attempt: 1 }),
          process({ pid: 3, memory: 5, job: 2, attempt: 3 }),
        ],
        claims: [
          { job: 1, attempt: 1, memory: 20 },
          { job: 2, attempt: 3, memory: 30 },
        ],
      }),
    );
    expect(split).toEqual({ own: 40, foreign: 0, unknown: 0, claimed: 25, free: 35, total: 100 });
  });
  it('is all promised where a job has the whole card', () => {
    const split = splitMemory(gpu({ claims: [{ job: 1, attempt: 1, memory: null }] }));
    expect(split).toMatchObject({ claimed: 100, free: 0 });
  });
  const untold = { pid: 1, job: 1, attempt: 1 };
  const used = (...processes: GpuProcess[]) =>
    splitMemory(gpu({ memory_used: 50, processes, claims: [{ job: 1, attempt: 1, memory: 60 }] }));
  it('is all own where nobody else is there, though the driver tells of no process', () => {
    expect(used(process(untold))).toMatchObject({ own: 50, foreign: 0, unknown: 0, claimed: 10 });
    expect(used(process(untold), process({ pid: 2, memory: 20 }))).toMatchObject({
      own: 30,
      foreign: 20,
      unknown: 0,
    });
  });
  it('is nobody knows whose where both are there and neither is told', () => {
    expect(used(process(untold), process({ pid: 2 }))).toMatchObject({
      own: 0,
      foreign: 0,
      unknown: 50,
    });
    const unseen = { memory_used: 50, processes: null };
    expect(
      splitMemory(gpu({ ...unseen, claims: [{ job: 1, attempt: 1, memory: 60 }] })),
    ).toMatchObject({ own: 0, foreign: 0, unknown: 50 });
    expect(splitMemory(gpu(unseen))).toMatchObject({ foreign: 50, unknown: 0 });
  });
  it('is unknown where the probe does not know', () => {
    expect(splitMemory(gpu({ memory_used: null }))).toBeNull();
  });
});

describe('a log', () => {
  it('joins pieces that end in the middle of a line or a character', () => {
    const model = new LogModel();
    const whole = new TextEncoder().encode('eins\nzwölf\n');
    model.appendBytes(whole.slice(0, 8));
    model.appendBytes(whole.slice(8));
    expect(model.lines.map((line) => line.raw)).toEqual(['eins', 'zwölf']);
    expect(model.offset).toBe(whole.length);
  });
  it('finds lines and the first error', () => {
    const model = new LogModel();
    model.append('step 1\nRuntimeError: nan\nstep 2 \u001b[31mERROR\u001b[0m\nunfinished step');
    expect(model.find('STEP')).toEqual([0, 2, 3]);
    expect(model.firstError()).toBe(1);
    expect(model.count).toBe(4);
  });
  it('holds the end of what is followed, and the numbers of its lines', () => {
    const model = new LogModel(100, 1_000);
    for (let i = 0; i < 50; i += 1) model.append(`line ${i} é\n`);
    expect(model.count).toBeLessThan(12);
    expect(model.at(model.count - 1).raw).toBe('line 49 é');
    expect(model.dropped + model.count).toBe(50);
    expect(model.find('line 48')).toEqual([48]);
    // All that went was whole lines, counted in bytes.
    const gone = Array.from({ length: model.dropped }, (_, i) => `line ${i} é\n`).join('');
    expect(model.begin).toBe(new TextEncoder().encode(gone).length);
  });
  it('holds no more lines than can be scrolled, and no line without an end', () => {
    const many = new LogModel(1_000_000, 100);
    many.appendBytes(new TextEncoder().encode('\u001b[31m\n'.repeat(5_000)));
    expect(many.count).toBe(100);
    expect(many.dropped).toBe(4_900);
    expect(many.at(0).begin).toEqual({ fg: 'var(--ansi-1)' });
    const drawn = new LogModel(100, 100);
    for (let i = 0; i < 1_000; i += 1) drawn.append(`\r${i}%`);
    expect(drawn.at(0).raw.length).toBeLessThan(120);
    expect(drawn.shown(0).pieces[0]?.text).toBe('999%');
    expect(drawn.begin).toBeGreaterThan(0);
  });
  it('says what is not shown of a line, and does not find it there', () => {
    const model = new LogModel();
    model.append(`\u001b[31m${'a'.repeat(LONGEST - 1)}\u001b[0mbneedle error:\nneedle\n`);
    const { pieces, more } = model.shown(0);
    expect(pieces.map((piece) => piece.text.length)).toEqual([LONGEST - 1, 1]);
    expect(more).toBe('needle error:'.length);
    expect(model.find('ab')).toEqual([0]);
    expect(model.find('needle')).toEqual([1]);
    expect(model.firstError()).toBeNull();
    expect(model.shown(1).more).toBe(0);
  });
  it('marks every match', () => {
    const parts = highlight({ text: 'abcABC', style: {} }, 'b');
    expect(parts.map((part) => [part.text, part.mark])).toEqual([
      ['a', false],
      ['b', true],
      ['cA', false],
      ['B', true],
      ['C', false],
    ]);
  });
});

const span = (attempt: number, begin: number, end: number | null, uuids = ['a']): Span =>
  ({ attempt, job: attempt, started_at: begin, ended_at: end, gpu_uuids: uuids }) as Span;

describe('the timeline', () => {
  it('gives attempts that share a card rows of their own', () => {
    const [lane] = lanes(
      [{ uuid: 'a', index: 0 }],
      [span(1, 0, 10), span(2, 5, null), span(3, 12, 15)],
      0,
      20,
    );
    expect(lane?.bars.map((bar) => [bar.span.attempt, bar.row])).toEqual([
      [1, 0],
      [2, 1],
      [3, 0],
    ]);
    expect(lane?.rows).toBe(2);
  });
  it('shows cards that are gone, and jobs without one', () => {
    const drawn = lanes(
      [{ uuid: 'a', index: 0 }],
      [span(1, 0, 10, ['old']), span(2, 0, 10, [])],
      0,
      20,
    );
    expect(drawn.map((lane) => lane.label)).toEqual(['GPU 0', 'old', '']);
  });
  it('is as long as what there is to show', () => {
    const now = 1_000 * 60_000;
    expect(fitting([now - 60_000], now)).toBe('10m');
    expect(fitting([now - 60_000, now - 30 * 60_000], now)).toBe('1h');
    expect(fitting([0], now)).toBe('1d');
  });
  it('leaves out what is not in the time shown', () => {
    expect(lanes([{ uuid: 'a', index: 0 }], [span(1, 0, 5)], 10, 20)[0]?.bars).toEqual([]);
  });
});

describe('long commands that are nearly the same', () => {
  it('are cut where they do not differ', () => {
    const same = `python train.py ${'--option value '.repeat(30)}`;
    const cut = telling([1, 2].map((seed) => `${same}--seed ${seed}`));
    expect(cut[0]).toMatch(/^python train\.py .*… .*--seed 1$/);
    expect(cut[1]).toMatch(/--seed 2$/);
    expect(cut.every((command) => command.length < 210)).toBe(true);
  });
  it('are left alone where they are short or differ early', () => {
    expect(telling(['a 1', 'a 2'])).toEqual(['a 1', 'a 2']);
    const [long = ''] = telling([`a ${'x'.repeat(300)}`, `b ${'x'.repeat(300)}`]);
    expect(long).toMatch(/^a x+…$/);
    expect(telling(['z'.repeat(300)])[0]).toHaveLength(201);
  });
});

describe('a sweep', () => {
  it('leaves what values mean to the daemon', () => {
    for (const values of ['0.1, 0.03', '0..10..2', 'log(1e-5, 1e-1, 5)', '3..1', '1..5000']) {
      expect(valuesOf(values)).toBe(JSON.stringify(values));
    }
    expect(valuesOf(' 0.1 ')).toBe('[0.1]');
    expect(valuesOf('a b')).toBe('["a b"]');
    expect(valuesOf('no')).toBe('["no"]');
  });
  it('quotes what YAML would read otherwise', () => {
    expect(scalar('0.1')).toBe('0.1');
    expect(scalar('no')).toBe('"no"');
    expect(scalar('a: b')).toBe('"a: b"');
    expect(scalar('adam')).toBe('adam');
  });
  const sweep = {
    name: 'lr',
    command: 'python t.py {lr} {seed} ${HOME} {port}',
    axes: [
      { name: 'lr', values: '0.1, 0.2' },
      { name: '', values: '' },
    ],
    seeds: '1..2',
    gpus: '2',
    gpuMemory: '8GiB',
    queue: 'car',
    retries: '1',
  };
  it('becomes a job file', () => {
    expect(sweepFile(sweep)).toBe(
      [
        'version: 1',
        'name: lr',
        'jobs:',
        '  - name: lr',
        '    matrix:',
        '      lr: "0.1, 0.2"',
        '      seed: "1..2"',
        '    run: |',
        '      python t.py {lr} {seed} ${HOME} {port}',
        '    gpus: 2',
        '    gpu_memory: "8GiB"',
        '    queue: car',
        '    retries: 1',
        '',
      ].join('\n'),
    );
  });
  it('tells what nothing fills in', () => {
    const command = '{lr} {seed} {port} ${HOME} {{word}} {size} {size}';
    expect(unfilled({ ...sweep, command })).toEqual(['size']);
  });
  it('tells of axes that only repeat the same command', () => {
    const axes = [
      { name: 'lr', values: '1,2' },
      { name: 'size', values: '1..3' },
      { name: '', values: '' },
    ];
    expect(unused({ ...sweep, axes, seeds: '1..3', command: 'train {lr}' })).toEqual([1, 'seeds']);
    expect(unused({ ...sweep, axes, seeds: '', command: 'train {lr} {size}' })).toEqual([]);
  });
  it('knows what each line of its file says', () => {
    const axes = [
      { name: '', values: '' },
      { name: 'lr', values: '1,2' },
    ];
    const one = { ...sweep, axes, seeds: '1', command: 'a\nb', gpus: '2', queue: 'q' };
    const fields = sweepFile(one)
      .split('\n')
      .map((line, i) => [line.trim(), fieldAt(one, i + 1)] as const);
    const at = (begin: string) => fields.find(([line]) => line.startsWith(begin))?.[1];
    expect(at('lr:')).toBe(1);
    expect(at('seed:')).toBe('seeds');
    expect([at('a'), at('b'), at('run:')]).toEqual(['command', 'command', 'command']);
    expect([at('gpus:'), at('queue:'), at('version:')]).toEqual(['gpus', 'queue', undefined]);
  });
  it('shows the daemon an axis that is not right', () => {
    const wrong = { ...sweep, axes: [{ name: 'a b', values: '' }] };
    expect(sweepFile(wrong)).toContain('      "a b": [""]\n');
  });
});

describe('rules', () => {
  const rule = (key: string, help = ''): Rule => ({
    key,
    value: '1',
    default: '0',
    source: 'default',
    type: 'N',
    help,
  });
  it('stand in groups, each in one', () => {
    expect(groupOf('retry_config.exit')).toBe('retry');
    expect(groupOf('queue.car.limit')).toBe('limits');
    expect(grouped([rule('seed'), rule('gpu_left', 'cards left to others')], 'left')).toEqual([
      ['share', [rule('gpu_left', 'cards left to others')]],
    ]);
  });
  it('offer what can be chosen', () => {
    expect(choices('easy|any|none')).toEqual(['easy', 'any', 'none']);
    expect(choices('BOOL')).toEqual(['true', 'false']);
    expect(choices('SIZE')).toBeNull();
  });
});

const detail = {
  job: {
    name: 'train',
    queue: 'car',
    priority: 5,
    gpus: 1,
    gpus_max: 2,
    gpu_memory: 8 * 1024 ** 3,
    retries: 1,
    cwd: '/data',
    params: { lr: '0.1' },
  },
  commands: [{ shell: false, argv: ['python', 'a b.py'] }],
  env: ['A=1'],
  rules: { strategy: 'pack' },
  cpus: 2,
  memory: 0,
  resources: {},
  time_ms: 7_200_000,
  grace_ms: 10_000,
  linger: false,
} as unknown as JobDetail;

describe('submitting a job again', () => {
  it('keeps what was not touched as it was', () => {
    const spec = specOf(detail, draftOf(detail), NOTHING);
    expect(spec.commands).toEqual(detail.commands);
    expect(spec).toMatchObject({
      gpus: { min: 1, max: 2 },
      gpu_memory: 8 * 1024 ** 3,
      time_ms: 7_200_000,
      rules: { strategy: 'pack' },
      params: { lr: '0.1' },
    });
  });
  it('takes an edited command as shell, whole, and leaves the others alone', () => {
    const many = {
      ...detail,
      commands: [...detail.commands, { shell: true, argv: ['cat <<E\na\n\nb\nE'] }],
    };
    const draft = draftOf(many);
    expect(draft.commands).toEqual(["python 'a b.py'", 'cat <<E\na\n\nb\nE']);
    const heredoc = 'cat <<E\na\n\nc\nE';
    const commands = [draft.commands[0] ?? '', heredoc, ' '];
    expect(specOf(many, { ...draft, commands }, NOTHING).commands).toEqual([
      { shell: false, argv: ['python', 'a b.py'] },
      { shell: true, argv: [heredoc] },
    ]);
  });
  it('waits for what it waited for, as far as that is still to come', () => {
    const own = {
      ...detail,
      after_kind: 'any',
      log: '/data/{job_id}.log',
      job: { ...detail.job, log: '/data/10.log' },
    } as JobDetail;
    const spec = specOf(own, draftOf(own), { after: [3, 4], startAt: 99 });
    expect(spec).toMatchObject({
      after: [3, 4],
      after_kind: 'any',
      start_at: 99,
      log: '/data/{job_id}.log',
    });
    expect(specOf(own, { ...draftOf(own), log: '' }, NOTHING)).not.toHaveProperty('log');
    // What berth keeps of one job is not for another to write to.
    const kept = { ...detail, job: { ...detail.job, log: '/home/u/berth/logs/0/10.2.log' } };
    expect(draftOf(kept).log).toBe('');
    expect(specOf(kept, draftOf(kept), NOTHING)).not.toHaveProperty('log');
  });
  it('is the same experiment as long as it does the same', () => {
    const done = { ...detail, fingerprint: '00000000000000ff' };
    const draft = draftOf(done);
    expect(specOf(done, { ...draft, queue: 'bus' }, NOTHING).fingerprint).toBe(done.fingerprint);
    expect(specOf(done, { ...draft, commands: ['true'] }, NOTHING)).not.toHaveProperty(
      'fingerprint',
    );
  });
  it('says what is wrong', () => {
    expect(check({ ...draftOf(detail), gpus: 'two', cwd: 'here', time: 'soon' })).toEqual({
      gpus: 'range',
      cwd: 'path',
      time: 'time',
    });
  });
});

describe('what is done to many', () => {
  it('goes back to where each came from, together', () => {
    const before = [
      { id: 1, queue: 'a', priority: 5 },
      { id: 2, queue: 'b', priority: 5 },
      { id: 3, queue: 'a', priority: 1 },
    ];
    expect(waysBack(before, 'queue')).toEqual([
      [[1, 3], { to: 'queue', queue: 'a' }],
      [[2], { to: 'queue', queue: 'b' }],
    ]);
    expect(waysBack(before, 'priority')).toEqual([
      [[1, 2], { to: 'priority', priority: 5 }],
      [[3], { to: 'priority', priority: 1 }],
    ]);
    expect(waysBack(before, 'first')).toEqual([]);
  });
  it('is asked for in parts that an address has room for', () => {
    const all = Array.from({ length: 25_000 }, (_, i) => i + 1);
    expect(rangeParts(all)).toEqual(['1-10000', '10001-20000', '20001-25000']);
    const odd = all.filter((id) => id % 2).map((id) => id + 1_000_000);
    expect(Math.max(...rangeParts(odd).map((part) => part.length))).toBeLessThan(4_100);
    expect(rangeParts(odd).join(',').split(',')).toHaveLength(odd.length);
  });
  it('knows what waits because somebody said so', () => {
    const why = (kind: 'held' | 'delayed' | 'gpu') => ({
      why: { kind, numbers: {}, names: {}, jobs: [] },
    });
    expect(waitsOnPurpose(why('held'))).toBe(true);
    expect(waitsOnPurpose(why('delayed'))).toBe(true);
    expect(waitsOnPurpose(why('gpu'))).toBe(false);
  });
});

const results = {
  by: ['lr', 'net'],
  groups: [
    {
      params: { lr: '0.1', net: 'a' },
      runs: 3,
      failed: 1,
      metrics: { acc: { n: 2, mean: 0.9, std: 0.01 } },
    },
    {
      params: { lr: '0.01', net: 'a' },
      runs: 3,
      failed: 0,
      metrics: { acc: { n: 3, mean: 0.8, std: null } },
    },
    {
      params: { lr: '0.1', net: 'b, c' },
      runs: 1,
      failed: 0,
      metrics: { acc: { n: 0, mean: null, std: null } },
    },
  ],
} as unknown as Results;

describe('results', () => {
  it('are drawn in the order of the parameter', () => {
    expect([...plotPoints(results, 'acc', 'lr')]).toEqual([
      [
        'net=a',
        [
          { x: '0.01', mean: 0.8, std: 0 },
          { x: '0.1', mean: 0.9, std: 0.01 },
        ],
      ],
    ]);
  });
  it('are exported with what needs quotes in quotes', () => {
    expect(csv(results).split('\n')).toEqual([
      'lr,net,runs,failed,acc mean,acc std,acc n',
      '0.1,a,3,1,0.9,0.01,2',
      '0.01,a,3,0,0.8,,3',
      '0.1,"b, c",1,0,,,0',
      '',
    ]);
  });
});

describe('an axis', () => {
  it('has marks that are easy to read, around what is shown', () => {
    expect(niceTicks(0.81, 0.83).map(shortNumber)).toEqual([
      '0.81',
      '0.815',
      '0.82',
      '0.825',
      '0.83',
    ]);
    expect(niceTicks(3, 3)).toContain(3);
    expect(niceTicks(-1, 11)).toEqual([-5, 0, 5, 10, 15]);
  });
});

describe('what is free', () => {
  it('is what jobs may have: not cards that are left to others or out of use', () => {
    const claims = [{ job: 1, attempt: 1, memory: 60 }];
    const reserved = 'left to others (gpu_left)';
    const gpus = [
      gpu({ state: 'free' }),
      gpu({ state: 'free', reserved }),
      gpu({ state: 'claimed', claims }),
      gpu({ state: 'claimed', claims, reserved }),
      gpu({ state: 'drained', trouble: 'out of use: dust' }),
    ];
    expect(freeOf(gpus)).toEqual({ cards: 1, memory: 140 });
  });
});

describe('what a card is marked with', () => {
  it('tells what is being done about it before who uses it', () => {
    const claims = [{ job: 1, attempt: 1, memory: 1 }];
    expect(markOf(gpu({ state: 'trouble', lost: true }))).toBe('lost');
    expect(markOf(gpu({ state: 'drained', claims }))).toBe('draining');
    expect(markOf(gpu({ state: 'drained' }))).toBe('drained');
    expect(markOf(gpu({ state: 'free', reserved: 'left to others' }))).toBe('reserved');
    expect(markOf(gpu({ state: 'claimed', reserved: 'left to others', claims }))).toBe('claimed');
  });
});

describe('news', () => {
  it('are acted on at once, and then together', () => {
    vi.useFakeTimers();
    let done = 0;
    const ask = paced(() => (done += 1), 700);
    ask();
    ask();
    vi.advanceTimersByTime(50);
    expect(done).toBe(1);
    ask();
    vi.advanceTimersByTime(300);
    expect(done).toBe(1);
    vi.advanceTimersByTime(400);
    expect(done).toBe(2);
    ask();
    ask.cancel();
    vi.advanceTimersByTime(5000);
    expect(done).toBe(2);
    vi.useRealTimers();
  });
});

describe('a small chart', () => {
  it('has a gap where nothing is known, and ends at the right', () => {
    const values = [0, null, 100].map((value, i) => ({ t: 50 + 25 * i, value }));
    const parts = sparkParts(values, 100, 0, 200);
    // What was told last holds until now.
    expect(parts).toEqual([
      [[30, 26.5]],
      [
        [60, 1.5],
        [120, 1.5],
      ],
    ]);
  });
});
