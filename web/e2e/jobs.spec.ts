// What one does to jobs.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test, until, waiting } from './berth';
import type { Page } from '@playwright/test';

const LONG = 'while true; do echo tick; sleep 1; done';

async function open(page: Page, id: number) {
  await page.goto(`/ui/state/${id}`);
  await page.locator('.job-title').waitFor();
}
const undo = (page: Page) => page.getByRole('button', { name: 'Undo' }).click();
const menu = async (page: Page, item: string) => {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: item }).click();
};
test('a running job is killed after a question', async ({ console: page, instance }) => {
  const id = await instance.add(LONG, { name: 'to-kill' });
  await instance.reaches(id, 'running');
  await open(page, id);
  await page.getByRole('button', { name: 'Kill' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click();
  expect(await instance.state(id)).toBe('running');
  await page.getByRole('button', { name: 'Kill' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Kill' }).click();
  await instance.reaches(id, 'killed');
  await expect(page.locator('.job-title')).toContainText('killed');
});

test('a waiting job is cancelled, and that can be undone', async ({ console: page, instance }) => {
  const id = await waiting(instance, 'to-cancel');
  await open(page, id);
  await expect(page.getByRole('heading', { name: 'Why it waits' })).toBeVisible();
  await page.getByRole('button', { name: 'Kill' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Kill' }).click();
  await instance.reaches(id, 'cancelled');
  await undo(page);
  await instance.reaches(id, 'queued');
  await instance.post('/api/jobs/kill', { ids: [id] });
});

test('a job that was to start later is not offered back', async ({ console: page, instance }) => {
  const id = await instance.add('echo too early', {
    name: 'to-start-later',
    start_at: Date.now() + 3_600_000,
  });
  await open(page, id);
  await page.getByRole('button', { name: 'Kill' }).click();
  await expect(page.getByRole('alertdialog')).toContainText('cannot be undone either');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Kill' }).click();
  await instance.reaches(id, 'cancelled');
  await expect(page.getByText('0 are being ended, 1 cancelled.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Undo' })).toHaveCount(0);
});

test('a job is paused and goes on', async ({ console: page, instance }) => {
  const id = await instance.add(LONG, { name: 'to-pause' });
  await instance.reaches(id, 'running');
  await open(page, id);
  await page.getByRole('button', { name: 'Pause' }).click();
  await instance.reaches(id, 'paused');
  await undo(page);
  await instance.reaches(id, 'running');
  await page.getByRole('button', { name: 'Pause' }).click();
  await instance.reaches(id, 'paused');
  await page.getByRole('button', { name: 'Resume' }).click();
  await instance.reaches(id, 'running');
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
});

test('a failed job runs again under its id, and its attempts are told apart', async ({
  console: page,
  instance,
}) => {
  const id = await instance.add(
    'test -e done || { touch done; echo first; exit 3; }; echo second',
    { name: 'to-retry' },
  );
  await instance.reaches(id, 'failed');
  await open(page, id);
  await expect(page.locator('.job-message')).toContainText('code 3');
  await page.getByRole('button', { name: 'Run again' }).click();
  await instance.reaches(id, 'succeeded');
  await expect(page.getByRole('button', { name: /Attempt 2/ })).toBeVisible();
  await expect(page.getByRole('log')).toContainText('second');
  await page.getByRole('button', { name: /Attempt 1/ }).click();
  await expect(page.getByRole('log')).toContainText('first');
});

test('jobs change queue, priority and place', async ({ console: page, instance }) => {
  const id = await waiting(instance, 'to-move', { priority: 5 });
  await open(page, id);
  await menu(page, 'Change the priority');
  await page.getByRole('textbox', { name: 'Priority' }).fill('2');
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
  await until(
    'its priority is 2',
    async () => (await instance.jobs({ ids: String(id) }))[0]?.priority === 2,
  );
  await undo(page);
  await until(
    'its priority is 5',
    async () => (await instance.jobs({ ids: String(id) }))[0]?.priority === 5,
  );
  await menu(page, 'Move to another queue');
  await page.getByRole('textbox', { name: 'Queue' }).fill('elsewhere');
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
  await until(
    'it is in the queue',
    async () => (await instance.jobs({ ids: String(id) }))[0]?.queue === 'elsewhere',
  );
  await menu(page, 'Move to the front');
  await expect(page.getByText('1 moved.').last()).toBeVisible();
  await menu(page, 'Start before all others');
  await expect(page.getByText('1 go before all others.')).toBeVisible();
  await instance.post('/api/jobs/kill', { ids: [id] });
});

test('a job is edited and submitted again, and cloned', async ({ console: page, instance }) => {
  const log = `${instance.work}/to-edit.log`;
  const id = await instance.add('echo old', { name: 'to-edit', log });
  await instance.reaches(id, 'succeeded');
  await open(page, id);
  await page.getByRole('button', { name: 'Edit and resubmit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Retries').fill('many');
  await expect(dialog.getByRole('button', { name: 'Submit' })).toBeDisabled();
  await dialog.getByLabel('Retries').fill('1');
  await dialog.getByLabel('Command').fill('echo new');
  await expect(dialog.getByLabel('Log file')).toHaveValue(log);
  await dialog.getByLabel('Log file').fill('');
  await dialog.getByLabel('Name').fill('edited');
  await dialog.getByRole('button', { name: 'Submit' }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(`/${id}`));
  await expect(page.locator('h1')).toHaveText('edited');
  await expect(page.getByRole('log')).toContainText('new');
  const before = page.url();
  await page.getByRole('button', { name: 'Clone' }).click();
  await page.waitForURL((url) => url.href !== before);
  await expect(page.locator('h1')).toHaveText('edited');
});

test('a copy is as its original: commands of many lines, and what it waits for', async ({
  console: page,
  instance,
}) => {
  const first = await waiting(instance, 'goes-first');
  const later = Date.now() + 3_600_000;
  const heredoc = 'cat <<END\none\n\ntwo\nEND';
  const id = await instance.add('true', {
    name: 'whole',
    after: [first],
    after_kind: 'any',
    start_at: later,
    commands: [
      { shell: false, argv: ['echo', 'two words'] },
      { shell: true, argv: [heredoc] },
    ],
  });
  interface Copy {
    after: number[];
    after_kind: string;
    start_at: number;
    commands: unknown[];
  }
  const shown = async () =>
    (await instance.get(`/api/jobs/${new URL(page.url()).pathname.split('/').pop()}`)) as Copy;
  await open(page, id);
  const before = page.url();
  await page.getByRole('button', { name: 'Clone' }).dblclick();
  await page.waitForURL((url) => url.href !== before);
  await expect(page.locator('h1')).toHaveText('whole');
  expect(await shown()).toMatchObject({
    after: [first],
    after_kind: 'any',
    start_at: later,
  });
  // Two clicks, one copy.
  expect(await instance.jobs({ q: 'whole' })).toHaveLength(2);
  const copy = page.url();
  await page.getByRole('button', { name: 'Edit and resubmit' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Command 2', { exact: true })).toHaveValue(heredoc);
  await dialog.getByLabel('Command 2', { exact: true }).fill(heredoc.replace('two', 'three'));
  await expect(dialog.getByLabel(`waits for job ${first} to end`)).toBeChecked();
  await dialog.getByLabel(/^does not start before/).uncheck();
  await dialog.getByRole('button', { name: 'Submit' }).click();
  await page.waitForURL((url) => url.href !== copy);
  await expect(page.locator('h1')).toHaveText('whole');
  expect(await shown()).toMatchObject({
    after: [first],
    start_at: null,
    commands: [
      { shell: false, argv: ['echo', 'two words'] },
      { shell: true, argv: [heredoc.replace('two', 'three')] },
    ],
  });
  const all = await instance.jobs({ q: 'whole' });
  await instance.post('/api/jobs/kill', { ids: [first, ...all.map((job) => job.id)] });
});

test('an ended job is forgotten', async ({ console: page, instance }) => {
  const id = await instance.add('true', { name: 'to-forget' });
  await instance.reaches(id, 'succeeded');
  await open(page, id);
  await menu(page, 'Forget');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Forget' }).click();
  await page.waitForURL(/\/ui\/state$/);
  await until('it is gone', async () => (await instance.jobs({ ids: String(id) })).length === 0);
  await page.goto(`/ui/state/${id}`);
  await expect(page.getByText('There is no such job')).toBeVisible();
});

test('many jobs at once, by keys', async ({ console: page, instance }) => {
  const ids = [];
  for (let i = 0; i < 3; i += 1) ids.push(await waiting(instance, `bulk-${i}`));
  await page.goto('/ui/state?q=bulk-');
  await expect(page.locator('[data-job]')).toHaveCount(3);
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  const bar = page.getByRole('toolbar');
  await expect(bar).toContainText('2 selected');
  await bar.getByRole('button', { name: 'Select all of this list' }).click();
  await expect(bar).toContainText('3 selected');
  await bar.getByRole('button', { name: 'Pause' }).click();
  for (const id of ids) await instance.reaches(id, 'paused');
  await undo(page);
  for (const id of ids) await instance.reaches(id, 'queued');
  await bar.getByRole('button', { name: 'Kill' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Kill' }).click();
  for (const id of ids) await instance.reaches(id, 'cancelled');
  await expect(page.locator('[data-job] .badge-cancelled')).toHaveCount(3);
  await page.getByRole('button', { name: 'Clear the selection' }).click();
  await expect(bar).toHaveCount(0);
});

test('many jobs are resumed, moved, run again and forgotten together', async ({
  console: page,
  instance,
}) => {
  const ids = [await waiting(instance, 'together-1'), await waiting(instance, 'together-2')];
  const all = async (state: string) => {
    for (const id of ids) await instance.reaches(id, state);
  };
  await instance.post('/api/jobs/pause', { ids: ids.join(',') });
  await page.goto('/ui/state?q=together-');
  await page.getByLabel('Select all that are loaded').check();
  const bar = page.getByRole('toolbar');
  const question = page.getByRole('alertdialog');
  await bar.getByRole('button', { name: 'Resume' }).click();
  await all('queued');
  await undo(page);
  await all('paused');
  await menu(page, 'Move to another queue');
  await page.getByRole('textbox', { name: 'Queue' }).fill('elsewhere');
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click();
  await expect(page.locator('[data-job] .cell-queue')).toHaveText(['elsewhere', 'elsewhere']);
  await undo(page);
  await expect(page.locator('[data-job] .cell-queue')).toHaveText(['default', 'default']);
  await instance.post('/api/jobs/kill', { ids });
  await expect(page.locator('[data-job] .badge-cancelled')).toHaveCount(2);
  await bar.getByRole('button', { name: 'Run again' }).click();
  const done = page.getByText('2 wait again.');
  await question.or(done).first().waitFor();
  if (await question.isVisible()) {
    await question.getByRole('button', { name: 'Run again' }).click();
  }
  await expect(done).toBeVisible();
  await all('queued');
  await instance.post('/api/jobs/kill', { ids });
  await expect(page.locator('[data-job] .badge-cancelled')).toHaveCount(2);
  // What was said of all that lies above the bar, and below what is opened there.
  await expect(page.locator('.remark')).not.toHaveCount(0);
  await page.getByRole('button', { name: 'More actions' }).click();
  const covered = await page.getByRole('menuitem').evaluateAll((items) =>
    items
      .filter((item) => {
        const { left, top, width, height } = item.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) !== item;
      })
      .map((item) => item.textContent),
  );
  expect(covered, 'what lies below a remark').toEqual([]);
  await page.getByRole('menuitem', { name: 'Forget' }).click();
  await question.getByRole('button', { name: 'Cancel' }).click();
  await expect(bar).toContainText('2 selected');
  await menu(page, 'Forget');
  await question.getByRole('button', { name: 'Forget' }).click();
  await expect(page.getByText('2 forgotten.')).toBeVisible();
  await expect(page.getByText('No job fits')).toBeVisible();
  await expect(bar).toHaveCount(0);
  expect(await instance.jobs({ ids: ids.join(',') })).toEqual([]);
});

test('a job that is moved to the end runs after the others', async ({
  console: page,
  instance,
}) => {
  await instance.post('/api/rules', { set: [{ key: 'queue.ends.limit', value: '1' }] });
  await instance.post('/api/jobs/pause', { queue: 'ends' });
  const [first = 0, second = 0] = [
    await instance.add('echo first >> order', { queue: 'ends' }),
    await instance.add('echo second >> order', { queue: 'ends' }),
  ];
  await open(page, first);
  await menu(page, 'Move to the end');
  await expect(page.getByText('1 moved.')).toBeVisible();
  await instance.post('/api/jobs/resume', { queue: 'ends' });
  for (const id of [first, second]) await instance.reaches(id, 'succeeded');
  expect(readFileSync(path.join(instance.work, 'order'), 'utf8')).toBe('second\nfirst\n');
});

test('a bar of the timeline leads to its job', async ({ console: page, instance }) => {
  const id = await instance.add(LONG, {
    name: 'on-the-timeline',
    gpus: { min: 1, max: 1 },
    gpu_memory: 1024 ** 3,
  });
  await instance.reaches(id, 'running');
  await page.goto('/ui/state?view=timeline');
  await page.getByRole('radio', { name: '10 min' }).click();
  await page.getByRole('button', { name: `${id} on-the-timeline · running` }).click();
  await expect(page).toHaveURL(new RegExp(`/ui/state/${id}$`));
  await expect(page.locator('h1')).toHaveText('on-the-timeline');
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
});

test('a job that leaves the list is no longer selected', async ({ console: page, instance }) => {
  const ids = [await waiting(instance, 'leaves-1'), await waiting(instance, 'leaves-2')];
  await page.goto('/ui/state?state=queued&q=leaves-');
  await expect(page.locator('[data-job]')).toHaveCount(2);
  await page.keyboard.press('a');
  const bar = page.getByRole('toolbar');
  await expect(bar).toContainText('2 selected');
  await instance.post('/api/jobs/pause', { ids: String(ids[0]) });
  await expect(bar).toContainText('1 selected');
  await instance.post('/api/jobs/kill', { ids });
  await expect(bar).toHaveCount(0);
});

test('filters stand in the address', async ({ console: page, instance }) => {
  const id = await instance.add('exit 1', { name: 'filter-failed' });
  await instance.reaches(id, 'failed');
  await instance.reaches(await instance.add('true', { name: 'filter-good' }), 'succeeded');
  await page.goto('/ui/state?q=filter-');
  await expect(page.locator('[data-job]')).toHaveCount(2);
  await page.getByRole('button', { name: /^failed/ }).click();
  await expect(page.locator('[data-job]')).toHaveCount(1);
  expect(new URL(page.url()).searchParams.get('state')).toBe('failed');
  await page.reload();
  await expect(page.locator('[data-job]')).toHaveCount(1);
  await page.keyboard.press('/');
  await page.keyboard.type('nobody');
  await expect(page.getByText('No job fits')).toBeVisible();
  await page.getByRole('button', { name: 'Show all jobs' }).click();
  await expect(page.locator('[data-job]').first()).toBeVisible();
});

test('keys lead from the search to the list, and back from a job to where one was', async ({
  console: page,
  instance,
}) => {
  const ids = [];
  for (let i = 0; i < 60; i += 1) ids.push(await waiting(instance, `keyed-${i}`));
  await page.goto('/ui/state');
  await page.locator('[data-job]').first().waitFor();
  const search = page.getByLabel('Search names');
  await page.keyboard.press('/');
  await page.keyboard.type('keyed-');
  await expect(page.locator('.table-foot')).toHaveText('60 jobs');
  await page.keyboard.press('Escape');
  await expect(search).toHaveValue('keyed-');
  await page.keyboard.press('x');
  await expect(page.getByRole('toolbar')).toContainText('1 selected');
  await page.keyboard.press('/');
  await page.keyboard.type('5');
  await page.keyboard.press('Enter');
  await expect(page.locator('[data-job]')).toHaveCount(11);
  // What is no longer in sight is not selected.
  await expect(page.getByRole('toolbar')).toHaveCount(0);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(page.locator('h1')).toContainText('keyed-5');
  await page.keyboard.press('u');
  await expect(page).toHaveURL(/\/ui\/state\?q=keyed-5$/);
  await search.fill('keyed-');
  await expect(page.locator('.table-foot')).toHaveText('60 jobs');
  const grid = page.getByRole('grid');
  await grid.evaluate((element) => element.scrollTo(0, 800));
  await page.locator(`[data-job="${ids[25]}"]`).click();
  await page.locator('.job-title').waitFor();
  await page.getByRole('link', { name: 'back to where you were' }).click();
  await expect(page.locator(`[data-job="${ids[25]}"]`)).toBeVisible();
  expect(await grid.evaluate((element) => element.scrollTop)).toBe(800);
  await instance.post('/api/jobs/kill', { ids });
});

test('a log that is written can be read from above, by keys too', async ({
  console: page,
  instance,
}) => {
  const id = await instance.add('i=0; while true; do echo line $i; i=$((i+1)); sleep 0.02; done', {
    name: 'talks',
  });
  await instance.reaches(id, 'running');
  await open(page, id);
  const lines = page.locator('.log-lines');
  const follow = page.getByRole('button', { name: 'Follow the end' });
  const top = () => lines.evaluate((element) => element.scrollTop);
  await expect.poll(top).toBeGreaterThan(600);
  await expect(follow).toHaveAttribute('aria-pressed', 'true');
  await lines.focus();
  await page.keyboard.press('PageUp');
  await expect(follow).toHaveAttribute('aria-pressed', 'false');
  // As a finger or the scrollbar would. The key is lost while the page before is still scrolling.
  await expect(async () => {
    await page.keyboard.press('End');
    await expect(follow).toHaveAttribute('aria-pressed', 'true', { timeout: 1000 });
  }).toPass();
  await lines.evaluate((element) => element.scrollTo(0, 100));
  await expect(follow).toHaveAttribute('aria-pressed', 'false');
  await expect(page.locator('.log-line', { hasText: /line 8$/ })).toBeVisible();
  expect(await top()).toBe(100);
  // A search is left with its words, and n goes on in it.
  await page.keyboard.press('/');
  await page.keyboard.type('line 1');
  await page.keyboard.press('Escape');
  await expect(page.getByLabel('Search the log')).toHaveValue('line 1');
  await page.keyboard.press('n');
  await expect(page.locator('.log-bar')).toContainText('2 /');
  // What is read stays where it is when the job ends.
  await lines.evaluate((element) => element.scrollTo(0, 100));
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
  await expect(page.locator('.job-title')).toContainText('killed');
  await page.getByLabel('Search the log').fill('');
  await expect(page.locator('.log-line', { hasText: /line 8$/ })).toBeInViewport();
  expect(await top()).toBe(100);
});

test('whoever reads a long log goes on reading when its front goes', async ({
  console: page,
  instance,
}) => {
  const lines = (from: number, to: number) => `seq -f "line %.0f $(printf %070d 0)" ${from} ${to}`;
  const id = await instance.add(
    `${lines(1, 90_000)}; until test -e more; do sleep 0.1; done; ${lines(90_001, 140_000)}; sleep 600`,
    { name: 'long-log' },
  );
  await instance.reaches(id, 'running');
  await open(page, id);
  await expect(page.locator('.log-line', { hasText: /^90000line 90000 / })).toBeVisible();
  await page.getByLabel('Search the log').fill('line 60000 ');
  const read = page.locator('.log-line.flash');
  await expect(read).toBeInViewport();
  await instance.add('touch more');
  await expect(page.getByText('Only its end is shown and searched')).toBeVisible();
  await expect(read).toContainText('line 60000 ');
  await expect(read).toBeInViewport();
  await page.getByRole('button', { name: 'Follow the end' }).click();
  await expect(page.locator('.log-line', { hasText: /^line 140000 / })).toBeInViewport();
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
});

test('a log is searched, coloured, wrapped, and shows its first error', async ({
  console: page,
  instance,
}) => {
  const script = [
    'for i in $(seq 1 400); do echo "step $i loss=0.$i"; done',
    String.raw`printf '\033[31mred words\033[0m\n'`,
    'echo "RuntimeError: CUDA out of memory" >&2',
    'for i in $(seq 401 800); do echo "step $i"; done',
    `printf '%0500d\\n' 7`,
  ].join('; ');
  const id = await instance.add(script, { name: 'logs' });
  await instance.reaches(id, 'succeeded');
  await open(page, id);
  const log = page.getByRole('log');
  await expect(log).toContainText('step 1 loss');
  await page.keyboard.press('e');
  await expect(page.locator('.log-line.flash')).toContainText('RuntimeError');
  await expect(log.getByText('red words')).toHaveCSS('color', /rgb/);
  await page.getByLabel('Search the log').fill('step 77');
  await expect(page.locator('.log mark').first()).toHaveText('step 77');
  await expect(page.locator('.log-bar')).toContainText('1 / 11');
  await page.getByRole('button', { name: 'Next match' }).click();
  await expect(page.locator('.log-bar')).toContainText('2 / 11');
  await page.getByRole('button', { name: 'Previous match' }).click();
  await expect(page.locator('.log-bar')).toContainText('1 / 11');
  await page.getByRole('button', { name: 'Previous match' }).click();
  await expect(page.locator('.log-bar')).toContainText('11 / 11');
  await expect(page.locator('.log-line.flash')).toContainText('step 779');
  await page.getByRole('button', { name: 'Wrap long lines' }).click();
  await expect(page.locator('.log-lines.wrap')).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  expect((await download).suggestedFilename()).toContain(String(id));
});

test('a log is followed while it is written', async ({ console: page, instance }) => {
  const id = await instance.add(
    'until test -e go; do sleep 0.1; done; echo here it comes; sleep 600',
    { name: 'follow' },
  );
  await instance.reaches(id, 'running');
  await open(page, id);
  await expect(page.getByText('It has printed nothing yet.')).toBeVisible();
  await instance.add('touch go');
  await expect(page.getByRole('log')).toContainText('here it comes');
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
});

test('a paused instance goes on from its banner, in every browser', async ({
  console: page,
  browser,
  instance,
  cookies,
}) => {
  const context = await browser.newContext({ storageState: cookies, baseURL: instance.origin });
  const other = await context.newPage();
  await other.goto('/ui/rule');
  await page.goto('/ui/gpu');
  await instance.post('/api/jobs/pause', { instance: true });
  const id = await instance.add('true', { name: 'held-with-all' });
  for (const one of [page, other]) {
    await expect(one.getByText('The instance is paused')).toBeVisible();
  }
  await page.locator('.banner').getByRole('button', { name: 'Resume' }).click();
  await instance.reaches(id, 'succeeded');
  for (const one of [page, other]) {
    await expect(one.getByText('The instance is paused')).toHaveCount(0);
  }
  await context.close();
});

test('queues are paused and go on', async ({ console: page, instance }) => {
  const id = await waiting(instance, 'in-queue', { queue: 'held' });
  await page.goto('/ui/state?view=groups');
  const row = page.getByRole('row', { name: /held/ });
  await row.getByRole('button', { name: 'Pause held' }).click();
  await expect(row).toContainText('paused');
  await undo(page);
  await expect(row.getByRole('button', { name: 'Pause held' })).toBeVisible();
  await instance.post('/api/jobs/kill', { ids: [id] });
});
