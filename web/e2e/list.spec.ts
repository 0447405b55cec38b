// The list of jobs, its order, and that all who look see the same.

import { expect, test, waiting } from './berth';
import type { Page } from '@playwright/test';

/** Notes in a page when something can first be seen there. */
async function awaits(page: Page, selector: string): Promise<() => Promise<number>> {
  await page.evaluate((what) => {
    const seen = globalThis as typeof globalThis & { seenAt?: number };
    delete seen.seenAt;
    const look = () => {
      if (!document.querySelector(what)) return;
      seen.seenAt ??= Date.now();
      watcher.disconnect();
    };
    const watcher = new MutationObserver(look);
    watcher.observe(document.body, { subtree: true, childList: true, attributes: true });
    look();
  }, selector);
  return async () => {
    await page.locator(selector).waitFor({ state: 'attached' });
    return page.evaluate(
      () => (globalThis as typeof globalThis & { seenAt?: number }).seenAt ?? Date.now(),
    );
  };
}

test('two browsers stay in step', async ({ console: page, browser, instance, cookies }) => {
  const context = await browser.newContext({ storageState: cookies, baseURL: instance.origin });
  const other = await context.newPage();
  for (const one of [page, other]) {
    await one.goto('/ui/state?q=in-step');
    await expect(one.getByText('No job fits')).toBeVisible();
    await expect(one.locator('.pulse.live')).toBeVisible();
  }
  // Both clocks are of one machine: from the answer that one browser got to what the other shows.
  const took = async (what: string, selector: string, act: () => Promise<unknown>) => {
    const seen = await awaits(other, selector);
    await act();
    const begin = Date.now();
    const late = Math.max(0, (await seen()) - begin);
    test.info().annotations.push({ type: 'in step', description: `${what}: ${late} ms` });
    // A second is meant, and where nothing else runs it is a tenth of that; polling takes longer.
    expect(late, what).toBeLessThan(5_000);
  };
  const answer = (path: string) =>
    page.waitForResponse((response) => response.url().endsWith(path) && response.ok());
  const press = async (name: string) => {
    const answered = answer(`/api/jobs/${name.toLowerCase()}`);
    await page.getByRole('toolbar').getByRole('button', { name }).click();
    if (name === 'Kill') {
      await page.getByRole('alertdialog').getByRole('button', { name }).click();
    }
    await answered;
  };
  let id = 0;
  await took('submit', '[data-job] .badge-queued', async () => {
    id = await waiting(instance, 'in-step');
  });
  await page.locator(`[data-job="${id}"] input`).check();
  await took('pause', `[data-job="${id}"] .badge-paused`, () => press('Pause'));
  await took('resume', `[data-job="${id}"] .badge-queued`, () => press('Resume'));
  await took('kill', `[data-job="${id}"] .badge-cancelled`, () => press('Kill'));
  await context.close();
});

test('the columns sort, in the address, and what changes finds its place', async ({
  console: page,
  instance,
}) => {
  const ids = [];
  for (const priority of [5, 7, 3]) {
    ids.push(await waiting(instance, `sorted-${priority}`, { priority }));
  }
  const [middle, last, first] = ids;
  const order = () =>
    page
      .locator('[data-job]')
      .evaluateAll((rows) =>
        rows
          .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
          .map((row) => Number(row.getAttribute('data-job'))),
      );
  const heading = (name: string) => page.getByRole('columnheader', { name });
  await page.goto('/ui/state?q=sorted-');
  await expect.poll(order).toEqual([first, last, middle]);
  await expect(heading('Id')).toHaveAttribute('aria-sort', 'descending');
  await heading('Priority').getByRole('button').focus();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/sort=priority$/);
  await expect(heading('Priority')).toHaveAttribute('aria-sort', 'ascending');
  await expect(heading('Id')).toHaveAttribute('aria-sort', 'none');
  await expect.poll(order).toEqual([first, middle, last]);
  // Somebody else changes one, and submits another.
  await instance.post('/api/jobs/move', { ids: String(last), to: 'priority', priority: 1 });
  await expect.poll(order).toEqual([last, first, middle]);
  const urgent = await waiting(instance, 'sorted-2', { priority: 2 });
  await expect.poll(order).toEqual([last, urgent, first, middle]);
  await heading('Priority').getByRole('button').click();
  await expect(page).toHaveURL(/sort=priority&order=desc$/);
  await expect.poll(order).toEqual([middle, first, urgent, last]);
  await page.reload();
  await expect.poll(order).toEqual([middle, first, urgent, last]);
  await heading('Ended').getByRole('button').click();
  await instance.post('/api/jobs/kill', { ids: [first] });
  await expect.poll(async () => (await order())[0]).toBe(first);
  await instance.post('/api/jobs/kill', { ids: [...ids, urgent] });
});

test('a job opens in a tab of its own, and its name can be read on a phone', async ({
  console: page,
  instance,
}) => {
  const name = `tabbed-${'and-long-'.repeat(12)}`;
  const id = await waiting(instance, name);
  await page.goto('/ui/state?q=tabbed-');
  const row = page.locator(`[data-job="${id}"]`);
  for (const click of [
    () => row.click({ modifiers: ['ControlOrMeta'] }),
    () => row.click({ button: 'middle' }),
    () => row.getByRole('link').click({ modifiers: ['ControlOrMeta'] }),
  ]) {
    const opening = page.context().waitForEvent('page');
    await click();
    const other = await opening;
    await expect(other).toHaveURL(new RegExp(`/ui/state/${id}$`));
    await other.close();
  }
  await expect(page).toHaveURL(/q=tabbed-$/);
  await page.setViewportSize({ width: 390, height: 844 });
  await row.getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/ui/state/${id}$`));
  const title = page.locator('h1');
  await expect(title).toHaveText(name);
  expect(await title.evaluate((h1) => h1.scrollWidth <= h1.clientWidth)).toBe(true);
  await instance.post('/api/jobs/kill', { ids: [id] });
});

test('what the daemon tells is said in Chinese, too', async ({ browser, instance, cookies }) => {
  const id = await waiting(instance, 'in-chinese', { queue: 'narrow-zh' });
  await instance.post('/api/jobs/pause', { queue: 'narrow-zh' });
  const lost = await instance.add('exit 3', { name: 'in-chinese-failed' });
  await instance.reaches(lost, 'failed');
  const context = await browser.newContext({
    storageState: cookies,
    baseURL: instance.origin,
    locale: 'zh-CN',
  });
  const page = await context.newPage();
  await page.goto('/ui/state?q=in-chinese');
  await expect(page.locator(`[data-job="${lost}"]`)).toContainText('退出码 3');
  await page.goto(`/ui/state/${id}`);
  await expect(page.locator('.why')).toContainText('队列“narrow-zh”已暂停');
  await expect(page.locator('.happenings')).toContainText('已提交');
  await context.close();
  await instance.post('/api/jobs/resume', { queue: 'narrow-zh' });
  await instance.post('/api/jobs/kill', { ids: [id] });
});

test('queues show how far they have come', async ({ console: page, instance }) => {
  const done = [
    await instance.add('true', { queue: 'far' }),
    await instance.add('exit 1', { queue: 'far' }),
  ];
  await instance.reaches(done[0] ?? 0, 'succeeded');
  await instance.reaches(done[1] ?? 0, 'failed');
  await page.goto('/ui/state?view=groups');
  const row = page.getByRole('row', { name: /far/ });
  await expect(row).toContainText('2 / 2');
  await expect(row.getByRole('img')).toHaveAccessibleName('succeeded 1, failed 1');
  const id = await waiting(instance, 'far', { queue: 'far' });
  await expect(row).toContainText('2 / 3');
  await instance.post('/api/jobs/kill', { ids: [id] });
  await expect(row).toContainText('3 / 3');
  await instance.post('/api/jobs/remove', { ids: String(done[0]) });
  await expect(row).toContainText('2 / 2');
});
