// What people really meet: nothing there, no GPU, a daemon that is gone, very much of everything.

import { existsSync } from 'node:fs';
import { test as base } from '@playwright/test';
import { Instance, barriers, expect, signIn, sticksOut, until } from './berth';
import type { Browser, Page } from '@playwright/test';

const test = base;

async function opened(browser: Browser, instance: Instance, width = 1440, port = 0): Promise<Page> {
  const context = await browser.newContext({
    locale: 'en-GB',
    viewport: { width, height: 900 },
  });
  await instance.ui(port);
  await signIn(context, instance);
  const page = await context.newPage();
  await page.goto(`${instance.origin}/ui/gpu`);
  return page;
}

test('an empty instance without a GPU tells what to do next', async ({ browser }) => {
  test.skip(existsSync('/dev/nvidiactl'), 'only a machine without a GPU can show it');
  const instance = new Instance(null);
  try {
    await instance.start();
    const page = await opened(browser, instance);
    await expect(page.getByText('There is no GPU here')).toBeVisible();
    expect(await barriers(page)).toEqual([]);
    for (const [path, text] of [
      ['state', 'No jobs yet'],
      ['state?view=groups', 'No batches yet'],
      ['state?view=timeline', 'Nothing ran in this time'],
      ['results', 'No results yet'],
    ] as const) {
      await page.goto(`${instance.origin}/ui/${path}`);
      await expect(page.getByText(text)).toBeVisible();
      expect(await barriers(page), path).toEqual([]);
    }
    await page.goto(`${instance.origin}/ui/state`);
    await page.getByRole('link', { name: 'Submit jobs' }).click();
    await page.waitForURL(/\/ui\/command/);
  } finally {
    await instance.close();
  }
});

test('a daemon that crashes is missed, found again, and nothing is lost', async ({ browser }) => {
  const instance = new Instance('sim:2x24GiB');
  try {
    await instance.start();
    const id = await instance.add('until test -e end; do sleep 0.2; done; echo survived', {
      name: 'survivor',
    });
    await instance.reaches(id, 'running');
    // A port that nobody else takes while the daemon is away.
    const page = await opened(browser, instance, 1440, 40_000 + (process.pid % 20_000));
    await page.goto(`${instance.origin}/ui/state?q=survivor`);
    await expect(page.locator(`[data-job="${id}"] .badge-running`)).toBeVisible();
    // A page that nobody has opened is asked for while there is nobody to give it.
    await page.goto(`${instance.origin}/ui/gpu`);
    await page.locator('.gpu-card').first().waitFor();
    await instance.crash();
    await page.locator('.rail').getByRole('link', { name: 'Rules' }).click();
    await expect(page.getByText('The daemon does not answer.')).toBeVisible();
    await instance.start();
    // Nobody asks it to: it listens where it did.
    expect(await instance.get('/api/listen')).toMatchObject({
      listening: true,
      port: instance.port,
    });
    await expect(page.locator('h1')).toHaveText('Rules');
    await expect(page.locator('.rule').nth(20)).toBeVisible();
    await page.locator('.rail').getByRole('link', { name: 'Jobs' }).click();
    await expect(page.locator(`[data-job="${id}"] .badge-running`)).toBeVisible();
    await instance.crash();
    await expect(page.getByText('The daemon does not answer.')).toBeVisible();
    await expect(page.getByText(/Trying again in/)).toBeVisible();
    // What was known stays readable.
    await expect(page.locator(`[data-job="${id}"]`)).toBeVisible();
    expect(await barriers(page)).toEqual([]);
    await instance.start();
    await expect(page.getByText('The daemon does not answer.')).toHaveCount(0);
    await expect(page.locator(`[data-job="${id}"] .badge-running`)).toBeVisible();
    await instance.add('touch end');
    await expect(page.locator(`[data-job="${id}"] .badge-succeeded`)).toBeVisible();
    await page.goto(`${instance.origin}/ui/state/${id}`);
    await expect(page.getByRole('log')).toContainText('survived');
  } finally {
    await instance.close();
  }
});

test('what was read stays while the daemon is gone, and time stands still', async ({ browser }) => {
  const instance = new Instance('sim:1x24GiB');
  try {
    await instance.start();
    const id = await instance.add('echo already said; sleep 600', { name: 'read before' });
    await instance.reaches(id, 'running');
    const page = await opened(browser, instance, 1440, 40_000 + ((process.pid + 7) % 20_000));
    await page.goto(`${instance.origin}/ui/state/${id}`);
    await expect(page.getByRole('log')).toContainText('already said');
    await instance.crash();
    await expect(page.getByText('The daemon does not answer.')).toBeVisible();
    const time = page.locator('.facts div', { hasText: 'Time' }).first();
    const then = await time.textContent();
    await page.waitForTimeout(2_500);
    expect(await time.textContent()).toBe(then);
    await page.locator('.rail').getByRole('link', { name: 'GPUs' }).click();
    await expect(page.locator('h1')).toHaveText('GPUs');
    await page.goBack();
    await expect(page.getByRole('log')).toContainText('already said');
    await expect(page.locator('.log-note')).toHaveCount(0);
    await instance.start();
    await expect(page.getByText('The daemon does not answer.')).toHaveCount(0);
  } finally {
    await instance.close();
  }
});

test('a hundred thousand jobs scroll, and a very long command is cut on the screen only', async ({
  browser,
}) => {
  test.setTimeout(300_000);
  const instance = new Instance('sim:1x24GiB');
  try {
    await instance.start();
    await instance.post('/api/jobs/pause', { instance: true });
    const many = Array.from({ length: 10_000 }, (_, i) => ({
      name: `many-${i}`,
      cwd: instance.work,
      gpus: { min: 0, max: 0 },
      commands: [{ shell: true, argv: ['true'] }],
    }));
    for (let part = 0; part < 10; part += 1) {
      await instance.post('/api/jobs', { key: `many-${part}`, environment: [], jobs: many });
    }
    const long = `echo ${'very-long-word '.repeat(4000)}`;
    const id = await instance.add(long, { name: 'long-command' });
    const page = await opened(browser, instance);
    await expect(page.getByText('The instance is paused')).toBeVisible();
    await page.goto(`${instance.origin}/ui/state`);
    await expect(page.locator('.table-foot')).toContainText('100,001');
    const rows = page.locator('[data-job]');
    await expect(rows.first()).toBeVisible();
    const grid = page.getByRole('grid');
    for (let i = 0; i < 12; i += 1) {
      await grid.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await page.waitForTimeout(50);
    }
    // Only what can be seen exists.
    expect(await rows.count()).toBeLessThan(120);
    await until('further pages came', async () =>
      grid.evaluate((element) => element.scrollHeight > 600 * 36),
    );
    await page.getByRole('columnheader').getByRole('button', { name: 'Id' }).click();
    await expect(page.locator('[data-job="1"]')).toBeVisible();
    await expect(page.getByRole('columnheader', { name: 'Id' })).toHaveAttribute(
      'aria-sort',
      'ascending',
    );
    // The one that differs stands first of a hundred thousand, as soon as it does.
    await page.getByRole('columnheader').getByRole('button', { name: 'Priority' }).click();
    await expect(page.locator('[data-job="1"]')).toBeVisible();
    await instance.post('/api/jobs/move', { ids: '77777', to: 'priority', priority: 1 });
    await expect(rows.first()).toHaveAttribute('data-job', '77777');
    // Found though the daemon looks through all the others first.
    await page.goto(`${instance.origin}/ui/state?q=long-command&order=asc`);
    await expect(page.locator(`[data-job="${id}"]`)).toBeVisible();
    await expect(page.locator('.table-foot')).toHaveText('1 job');
    await page.goto(`${instance.origin}/ui/state?queue=default`);
    await expect(page.locator('.table-foot')).toContainText('of 100,001 jobs loaded');
    // What is done to all of them is done to those that are not loaded, too.
    await page.keyboard.press('a');
    const bar = page.getByRole('toolbar');
    await bar.getByRole('button', { name: 'Select all of this list' }).click();
    await expect(bar).toContainText('100,001 selected');
    await bar.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Change the priority' }).click();
    await page.getByRole('textbox', { name: 'Priority' }).fill('3');
    await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
    await expect(page.getByText('100,001 moved.')).toBeVisible();
    expect((await instance.jobs({ ids: '1-10', sort: 'priority' }))[0]?.priority).toBe(3);
    // And an open page hears of it without a standstill.
    await page.evaluate(() => {
      const watched = globalThis as typeof globalThis & { longest?: number };
      let last = performance.now();
      watched.longest = 0;
      setInterval(() => {
        const now = performance.now();
        watched.longest = Math.max(watched.longest ?? 0, now - last);
        last = now;
      }, 50);
    });
    await bar.getByRole('button', { name: 'Pause' }).click();
    await expect(page.locator('[data-job] .badge-paused').first()).toBeVisible();
    await expect(page.getByRole('button', { name: /^paused/ })).toContainText('100,001');
    const longest = await page.evaluate(
      () => (globalThis as typeof globalThis & { longest?: number }).longest ?? 0,
    );
    test.info().annotations.push({ type: 'standstill', description: `${Math.round(longest)} ms` });
    expect(longest).toBeLessThan(10_000);
    await page.goto(`${instance.origin}/ui/state/${id}`);
    await expect(page.getByRole('button', { name: /Show all .* characters/ })).toBeVisible();
    expect(await sticksOut(page)).toBe(false);
    await page.getByRole('button', { name: /Show all .* characters/ }).click();
    expect(await sticksOut(page)).toBe(false);
  } finally {
    await instance.close();
  }
});

test('listening is stopped in the console, and the page is back when it begins again', async ({
  browser,
}) => {
  const instance = new Instance('sim:1x24GiB');
  try {
    await instance.start();
    const page = await opened(browser, instance);
    const listening = async () =>
      ((await instance.get('/api/listen')) as { listening: boolean }).listening;
    await page.goto(`${instance.origin}/ui/setting`);
    const stop = page.getByRole('button', { name: 'Stop listening' });
    const question = page.getByRole('alertdialog');
    await stop.click();
    await question.getByRole('button', { name: 'Cancel' }).click();
    expect(await listening()).toBe(true);
    await stop.click();
    await question.getByRole('button', { name: 'Stop listening' }).click();
    await until('it does not listen', async () => !(await listening()));
    const gone = page.getByRole('alert').getByText('The daemon does not answer.');
    await expect(gone).toBeVisible();
    await instance.ui(instance.port);
    // It may be back by itself before that.
    const again = page.getByRole('button', { name: 'Try now' });
    await again.click({ timeout: 5_000 }).catch(() => expect(gone).toHaveCount(0));
    await expect(gone).toHaveCount(0);
    await expect(stop).toBeVisible();
  } finally {
    await instance.close();
  }
});

test('on a phone a job is found, looked at and killed', async ({ browser }) => {
  const instance = new Instance('sim:2x24GiB');
  try {
    await instance.start();
    const id = await instance.add('echo running now; sleep 600', { name: 'pocket' });
    await instance.reaches(id, 'running');
    const page = await opened(browser, instance, 390);
    await page.locator('.tabs').getByRole('link', { name: 'Jobs' }).click();
    await page.getByLabel(`Select job ${id}`).check();
    const bar = page.getByRole('toolbar');
    // What is selected, and what can be done to it.
    const lines = await bar.getByRole('button').evaluateAll((all) => {
      const middle = (of: Element) => {
        const { top, height } = of.getBoundingClientRect();
        return Math.round((top + height / 2) / 10);
      };
      return new Set(all.map(middle)).size;
    });
    expect(lines).toBe(2);
    await bar.getByRole('button', { name: 'Pause' }).click();
    await instance.reaches(id, 'paused');
    const remark = page.locator('.remark').first();
    await remark.waitFor();
    const [above, below] = [await remark.boundingBox(), await bar.boundingBox()];
    expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0);
    await remark.getByRole('button', { name: 'Undo' }).click();
    await instance.reaches(id, 'running');
    await page.locator('.tabs').getByRole('link', { name: 'Rules' }).click();
    const field = page.getByRole('textbox', { name: 'max_concurrent' });
    await field.fill('7');
    await expect(page.getByRole('button', { name: 'Apply for this run' })).toBeInViewport();
    // What was written waits for whoever comes back.
    await page.locator('.tabs').getByRole('link', { name: 'Jobs' }).click();
    await page.locator(`[data-job="${id}"]`).waitFor();
    await page.locator('.tabs').getByRole('link', { name: 'Rules' }).click();
    await expect(field).toHaveValue('7');
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.locator('.tabs').getByRole('link', { name: 'Settings' }).click();
    await expect(page.getByRole('button', { name: /^Revoke/ }).first()).toBeInViewport({
      ratio: 1,
    });
    await page.locator('.tabs').getByRole('link', { name: 'Jobs' }).click();
    await page.locator(`[data-job="${id}"]`).click();
    await expect(page.locator('h1')).toHaveText('pocket');
    await page.getByRole('button', { name: 'Log', exact: true }).click();
    await expect(page.getByRole('log')).toBeInViewport();
    await page.getByRole('button', { name: 'Kill' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Kill' }).click();
    await instance.reaches(id, 'killed');
    await expect(page.locator('.job-title')).toContainText('killed');
  } finally {
    await instance.close();
  }
});

test('without a login nothing is shown but how to get one', async ({ browser }) => {
  const instance = new Instance('sim:1x24GiB');
  try {
    await instance.start();
    await instance.ui();
    const context = await browser.newContext({ locale: 'en-GB' });
    const page = await context.newPage();
    await page.goto(`${instance.origin}/ui/gpu`);
    await expect(page.getByText('This browser is not signed in')).toBeVisible();
    await expect(page.locator('.gpu-card')).toHaveCount(0);
    expect(await barriers(page)).toEqual([]);
    await context.close();
  } finally {
    await instance.close();
  }
});
