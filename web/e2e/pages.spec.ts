// Every page, at every width, in both themes and languages.

import path from 'node:path';
import {
  LOOKS,
  barriers,
  expect,
  seenAs,
  sticksOut,
  test as base,
  title,
  type Instance,
  type Look,
} from './berth';
import type { Page } from '@playwright/test';

/** With BERTH_BLESS=1 the pictures of the guide are made anew. */
const PICTURES = process.env['BERTH_BLESS']
  ? path.resolve('../docs/guide/pictures')
  : path.resolve('test-results/pictures');

interface Place {
  name: string;
  path: (job: number, batch: number) => string;
  en: string;
  zh: string;
  /** What shows that the page has its data. */
  ready: (page: Page) => Promise<unknown>;
}

const PLACES: readonly Place[] = [
  {
    name: 'gpu',
    path: () => '/ui/gpu',
    en: 'GPUs',
    zh: 'GPU',
    ready: (page) => page.locator('.gpu-card').nth(3).waitFor(),
  },
  {
    name: 'jobs',
    path: () => '/ui/state',
    en: 'Jobs',
    zh: '任务',
    ready: (page) => page.locator('[data-job]').first().waitFor(),
  },
  {
    name: 'groups',
    path: () => '/ui/state?view=groups',
    en: 'Jobs',
    zh: '任务',
    ready: (page) => page.locator('table').nth(1).waitFor(),
  },
  {
    name: 'timeline',
    path: () => '/ui/state?view=timeline',
    en: 'Jobs',
    zh: '任务',
    ready: (page) => page.locator('.gantt-bar').first().waitFor(),
  },
  {
    name: 'job',
    path: (job) => `/ui/state/${job}`,
    en: 'resnet',
    zh: 'resnet',
    // A log that is followed has its end in sight.
    ready: (page) =>
      page
        .getByText(/step \d+\//)
        .first()
        .waitFor(),
  },
  {
    name: 'configs',
    path: () => '/ui/command',
    en: 'Submit',
    zh: '提交',
    ready: (page) => page.locator('.task').first().waitFor(),
  },
  {
    name: 'file',
    path: () => '/ui/command?view=file',
    en: 'Submit',
    zh: '提交',
    ready: (page) => page.locator('.check table').waitFor(),
  },
  {
    name: 'sweep',
    path: () => '/ui/command?view=sweep',
    en: 'Submit',
    zh: '提交',
    ready: (page) => page.locator('.check table').waitFor(),
  },
  {
    name: 'results',
    path: (_, batch) => `/ui/results?batch=${batch}`,
    en: 'Results',
    zh: '结果',
    ready: (page) => page.locator('.plot').waitFor(),
  },
  {
    name: 'rule',
    path: () => '/ui/rule',
    en: 'Rules',
    zh: '规则',
    ready: (page) => page.locator('.rule').nth(20).waitFor(),
  },
  {
    name: 'setting',
    path: () => '/ui/setting',
    en: 'Settings',
    zh: '设置',
    ready: (page) => page.getByText('127.0.0.1').waitFor(),
  },
];

const FILE = `version: 1
name: resnet-sweep
queues: {vision: 3}
jobs:
  - name: resnet
    matrix: {lr: [0.1, 0.03, 0.01], seed: [1, 2]}
    run: berth-simgpu train --memory 6GiB --time 600s --steps 300 --ramp 3s
    gpu_memory: 8GiB
    queue: vision
`;
const DONE = `version: 1
name: lr-sweep
jobs:
  - name: quick
    matrix: {lr: [0.1, 0.03, 0.01], seed: [1, 2, 3]}
    gpus: 0
    run: berth report --metric loss={lr}{seed}
  - name: breaks
    gpus: 0
    run: "echo step 1; echo 'RuntimeError: loss is nan' >&2; exit 1"
`;
const COMMANDS = `# queue
1
python train.py --lr 0.1
# GiB
8

2
python train.py --lr 0.01
12
`;

interface Filled {
  job: number;
  batch: number;
}

/** As one finds it in the middle of a working day. */
async function fill(instance: Instance): Promise<Filled> {
  const file = { cwd: instance.work, name: 'jobs.yaml', dialect: 'native' };
  const done = (await instance.post('/api/jobfiles', { ...file, text: DONE })) as {
    batch: number;
    ids: number[];
  };
  const sweep = (await instance.post('/api/jobfiles', { ...file, text: FILE })) as {
    ids: number[];
  };
  await instance.post('/api/commands/single/new', undefined).catch(() => undefined);
  await instance.ask('PUT', '/api/commands/single?config_index=0', { text: COMMANDS });
  await instance.post('/api/rules', { set: [{ key: 'max_utilization', value: '40%' }] });
  instance.stranger(3, '5GiB', 20);
  const job = sweep.ids[0] ?? 0;
  await instance.reaches(job, 'running');
  for (let id = done.ids[0] ?? 0; id <= (done.ids[1] ?? 0); id += 1) {
    await instance.reaches(id, id === done.ids[1] ? 'failed' : 'succeeded');
  }
  return { job, batch: done.batch };
}

/** The workers of these tests run no others: on their cards there is room for nobody else, to the end. */
const test = base.extend<object, { filled: Filled }>({
  filled: [({ instance }, use) => fill(instance).then(use), { scope: 'worker', timeout: 120_000 }],
});

/** As a link would: the page that is there is loaded once. */
async function visit(page: Page, target: string) {
  if (page.url() === 'about:blank') {
    await page.goto(target);
    return;
  }
  await page.evaluate((to) => {
    history.pushState(null, '', to);
  }, target);
}

const drawn = (look: Look, place: Place): string | null => {
  if (look.width === 1440 && look.theme === 'light' && look.language === 'en') return place.name;
  if (look.width === 1440 && look.theme === 'dark' && look.language === 'en')
    return ['gpu', 'job'].includes(place.name) ? `${place.name}-dark` : null;
  if (look.width === 390 && look.language === 'en' && look.theme === 'light')
    return ['gpu', 'jobs'].includes(place.name) ? `${place.name}-phone` : null;
  return look.width === 1440 && look.theme === 'light' && place.name === 'gpu' ? 'gpu-zh' : null;
};

const judged = ({ width, theme, language }: Look) =>
  width === 1440 ? language === 'en' : width === 390 && theme === 'light' && language === 'zh';

for (const look of LOOKS) {
  test(`all pages at ${title(look)}`, async ({
    browser,
    instance,
    cookies,
    errors,
    filled: { job, batch },
  }) => {
    test.setTimeout(240_000);
    const context = await browser.newContext({
      storageState: cookies,
      baseURL: instance.origin,
      ...seenAs(look),
    });
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    for (const place of PLACES) {
      await test.step(place.name, async () => {
        await visit(page, place.path(job, batch));
        await expect(page.locator('h1')).toContainText(
          look.language === 'zh' ? place.zh : place.en,
        );
        await place.ready(page);
        await expect(page.locator('html')).toHaveAttribute('data-theme', look.theme);
        await expect(page.locator('html')).toHaveAttribute(
          'lang',
          look.language === 'zh' ? 'zh-CN' : 'en',
        );
        expect(await sticksOut(page), `${place.name} sticks out of the window`).toBe(false);
        // Colours are the theme's, and parts the width's: the widest in both themes, the narrowest in one.
        if (judged(look)) expect(await barriers(page), place.name).toEqual([]);
        const picture = drawn(look, place);
        if (picture) await page.screenshot({ path: path.join(PICTURES, `console-${picture}.png`) });
      });
    }
    await context.close();
  });
}

test('the first page is small and quick', async ({ browser, instance, cookies }) => {
  const paints: number[] = [];
  // Each in a browser that has nothing yet; what else runs may hold up one or another.
  for (let load = 0; load < 3; load += 1) {
    const context = await browser.newContext({ storageState: cookies, baseURL: instance.origin });
    const page = await context.newPage();
    const sizes: number[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/ui/')) {
        sizes.push(Number(response.headers()['content-length'] ?? 0));
      }
    });
    await page.goto('/ui/gpu');
    await page.locator('.gpu-card').first().waitFor();
    const total = sizes.reduce((sum, size) => sum + size, 0);
    expect(sizes.every((size) => size > 0)).toBe(true);
    expect(total).toBeLessThan(300_000);
    const paint = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    );
    expect(paint).toBeGreaterThan(0);
    paints.push(paint);
    test.info().annotations.push({
      type: 'first paint',
      description: `${Math.round(paint)} ms, ${total} bytes`,
    });
    await context.close();
  }
  expect(Math.min(...paints)).toBeLessThan(1_000);
});
