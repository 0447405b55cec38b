// The main actions where the other tests do not look: on narrow pages, in the dark, in Chinese. And what opens on the
// way, for those who do not see it or have no mouse.

import { translate, type Key } from '../src/i18n';
import {
  barriers,
  expect,
  seenAs,
  sticksOut,
  test,
  title,
  until,
  waiting,
  write,
  type Look,
} from './berth';
import type { Page } from '@playwright/test';

const LONG = 'sleep 600';

const ACTED: readonly Look[] = [
  { width: 1024, theme: 'dark', language: 'zh' },
  { width: 390, theme: 'light', language: 'zh' },
  { width: 390, theme: 'dark', language: 'en' },
];

for (const look of ACTED) {
  test(`the main actions at ${title(look)}`, async ({ browser, instance, cookies, errors }) => {
    const context = await browser.newContext({
      storageState: cookies,
      baseURL: instance.origin,
      ...seenAs(look),
    });
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(error.message));
    const own = `${look.width}-${look.theme}`;
    const t = (key: Key, values = {}) => translate(look.language, key, values);
    const button = (key: Key, values = {}) =>
      page.getByRole('button', { name: t(key, values), exact: true });
    const choose = (key: Key) => page.getByRole('menuitem', { name: t(key), exact: true }).click();
    const answer = (key: Key) =>
      page
        .getByRole('alertdialog')
        .getByRole('button', { name: t(key), exact: true })
        .click();
    const go = (key: Key) =>
      page
        .getByRole('navigation')
        .getByRole('link', { name: t(key), exact: true })
        .click();
    const said = (key: Key, values = {}) =>
      expect(page.locator('.remark', { hasText: t(key, values) }).last()).toBeVisible();
    const fits = async () => expect(await sticksOut(page)).toBe(false);

    const id = await instance.add(LONG, { name: `acted-${own}` });
    await instance.reaches(id, 'running');
    await page.goto('/ui/gpu');

    await test.step('pause and resume, in the list', async () => {
      await go('nav.state');
      await page.getByLabel(t('jobs.search')).fill(`acted-${own}`);
      // Another filter ends a selection.
      await expect(page).toHaveURL(new RegExp(`q=acted-${own}$`));
      await page.getByLabel(t('jobs.select', { id })).check();
      await expect(page.getByRole('toolbar')).toContainText(t('bulk.count', { count: 1 }));
      await button('action.pause').click();
      await said('did.paused', { count: 1 });
      await instance.reaches(id, 'paused');
      await expect(page.locator('[data-job] .badge-paused')).toHaveText(t('state.paused'));
      await fits();
      expect(await barriers(page)).toEqual([]);
      await button('action.resume').click();
      await instance.reaches(id, 'running');
    });

    await test.step('kill after a question, and run again', async () => {
      await page.locator(`[data-job="${id}"]`).getByRole('link').click();
      await button('action.kill').click();
      await expect(page.getByRole('alertdialog')).toContainText(
        t('kill.title', { what: t('did.job', { id }) }),
      );
      await fits();
      await answer('action.kill');
      await instance.reaches(id, 'killed');
      await expect(page.locator('.job-title')).toContainText(t('state.killed'));
      await button('action.retry').click();
      await said('did.retried', { count: 1 });
      await instance.reaches(id, 'running');
      await expect(page.locator('.job-title')).toContainText(t('state.running'));
    });

    await test.step('move to another queue', async () => {
      const late = await waiting(instance, `moved-${own}`);
      await page.goto(`/ui/state/${late}`);
      await button('action.more').click();
      await fits();
      await choose('move.queue');
      await page.getByRole('dialog').getByLabel(t('col.queue')).fill(`queue-${own}`);
      await page
        .getByRole('dialog')
        .getByRole('button', { name: t('action.move') })
        .click();
      await said('did.moved', { count: 1 });
      expect((await instance.jobs({ ids: String(late) }))[0]?.queue).toBe(`queue-${own}`);
      await instance.post('/api/jobs/kill', { ids: [id, late], grace_ms: 100 });
    });

    await test.step('drain a card, and use it again', async () => {
      await go('nav.gpu');
      const state = page.locator('.gpu-card').nth(2).locator('.gpu-state');
      const drained = new RegExp(`^(${t('gpuState.drained')}|${t('gpuState.draining')})$`);
      await button('gpu.actionsOf', { index: 2 }).click();
      await fits();
      await choose('gpu.drain');
      await said('gpu.drainedNow', { index: 2 });
      await expect(state).toHaveText(drained);
      await button('gpu.actionsOf', { index: 2 }).click();
      await choose('gpu.undrain');
      await said('gpu.undrained', { index: 2 });
      await expect(state).not.toHaveText(drained);
    });

    await test.step('change a rule, and know before what that does', async () => {
      const key = `queue.ruled-${own}.limit`;
      await instance.post('/api/rules', { set: [{ key, value: '1' }] });
      const first = await instance.add(LONG, { queue: `ruled-${own}` });
      const second = await instance.add(LONG, { queue: `ruled-${own}` });
      await instance.reaches(first, 'running');
      await go('nav.rule');
      await page.getByLabel(t('rule.search')).fill(key);
      await page.getByRole('textbox', { name: key }).fill('2');
      await expect(page.locator('.preview')).toContainText(t('preview.starts', { count: 1 }));
      await expect(
        page.locator('.preview').getByRole('link', { name: String(second) }),
      ).toBeVisible();
      await fits();
      expect(await barriers(page)).toEqual([]);
      await button('rule.applyRun').click();
      await said('rule.saved', { count: 1 });
      await instance.reaches(second, 'running');
      await instance.post('/api/jobs/kill', { ids: [first, second], grace_ms: 100 });
    });

    await test.step('submit a job file', async () => {
      await go('nav.command');
      await page.getByRole('radio', { name: t('command.file'), exact: true }).click();
      // What is offered there may arrive while it is filled in.
      const directory = page.getByLabel(t('file.cwd'));
      await expect(async () => {
        await directory.fill(instance.work);
        await expect(directory).toHaveValue(instance.work, { timeout: 1000 });
      }).toPass();
      await write(
        page,
        `version: 1\njobs:\n  - {name: written-${own}, gpus: 0, run: echo hello}\n`,
      );
      await expect(page.locator('.check')).toContainText(
        t('check.ok', { count: 1, dialect: t('dialect.native') }),
      );
      await fits();
      await button('file.submit', { count: 1 }).click();
      await said('file.done', { count: 1 });
      await until(
        'it has run',
        async () => (await instance.jobs({ q: `written-${own}` }))[0]?.state === 'succeeded',
      );
    });

    await test.step('another theme and language', async () => {
      await go('nav.setting');
      const theme = look.theme === 'light' ? 'dark' : 'light';
      const [language, tag, native] =
        look.language === 'zh'
          ? (['en', 'en', 'English'] as const)
          : (['zh', 'zh-CN', '中文'] as const);
      await page.getByRole('radio', { name: t(`theme.${theme}`), exact: true }).click();
      await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
      await page.getByRole('radio', { name: native, exact: true }).click();
      await expect(page.locator('html')).toHaveAttribute('lang', tag);
      await expect(page.locator('h1')).toHaveText(translate(language, 'nav.setting'));
      await fits();
    });
    await context.close();
  });
}

interface Opened {
  what: string;
  path: (job: number) => string;
  open: (page: Page) => Promise<unknown>;
  /** What is there then. */
  shown: string;
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

const OPENED: readonly Opened[] = [
  {
    what: 'a question',
    path: (job) => `/ui/state/${job}`,
    open: (page) => press(page, 'Kill'),
    shown: '[role=alertdialog]',
  },
  {
    what: 'a menu',
    path: (job) => `/ui/state/${job}`,
    open: (page) => press(page, 'More actions'),
    shown: '[role=menu]',
  },
  {
    what: 'a dialog with a slip in it',
    path: (job) => `/ui/state/${job}`,
    open: async (page) => {
      await press(page, 'Edit and resubmit');
      await page.getByLabel('Retries').fill('many');
    },
    shown: '[role=dialog] [aria-invalid=true]',
  },
  {
    what: 'the history of a card',
    path: () => '/ui/gpu',
    open: (page) => press(page, 'History of GPU 0'),
    shown: '[role=dialog] .chart',
  },
  {
    what: 'a changed rule and its preview',
    path: () => '/ui/rule',
    open: (page) => page.getByRole('textbox', { name: 'queue.opened.limit' }).fill('2'),
    shown: '.preview .chip',
  },
  {
    what: 'a mistake in a job file, and what may stand there',
    path: () => '/ui/command?view=file',
    open: async (page) => {
      await write(page, 'version: 1\njobs:\n  - colour: red\n');
      await page.locator('.cm-lint-marker-error').waitFor();
      await page.keyboard.type('    gpu_m');
    },
    shown: '.cm-tooltip-autocomplete',
  },
  {
    what: 'a log that is to be bound',
    path: () => '/ui/command',
    open: (page) =>
      page
        .getByRole('button', { name: /^Bind a log/ })
        .first()
        .click(),
    shown: '[role=dialog] input',
  },
  {
    what: 'a new token',
    path: () => '/ui/setting',
    open: async (page) => {
      await press(page, 'New token');
      await page.getByRole('dialog').getByLabel('Name').fill('opened');
      await press(page, 'Make');
    },
    shown: '[role=dialog] .secret',
  },
  {
    what: 'the keys',
    path: () => '/ui/gpu',
    open: async (page) => {
      await page.locator('.gpu-card').first().waitFor();
      await page.keyboard.press('?');
    },
    shown: '[role=dialog] kbd',
  },
  {
    what: 'selected jobs, and what was done to them',
    path: () => '/ui/state?q=opened',
    open: async (page) => {
      await page.locator('[data-job] input').first().check();
      await press(page, 'Pause');
    },
    shown: '.remark',
  },
];

for (const look of [
  { width: 1440, theme: 'light', language: 'en' },
  { width: 1440, theme: 'dark', language: 'en' },
] as const satisfies readonly Look[]) {
  test(`what opens is for everybody: ${title(look)}`, async ({
    browser,
    instance,
    cookies,
    errors,
  }) => {
    await instance.post('/api/rules', { set: [{ key: 'queue.opened.limit', value: '1' }] });
    const ids: number[] = [];
    for (let i = 0; i < 2; i += 1) {
      ids.push(await instance.add(LONG, { name: 'opened', queue: 'opened' }));
    }
    await instance.reaches(ids[0] ?? 0, 'running');
    await instance.post('/api/commands/single/new', {});
    await instance.ask('PUT', '/api/commands/single?config_index=0', { text: '1\necho task\n1\n' });
    const context = await browser.newContext({
      storageState: cookies,
      baseURL: instance.origin,
      ...seenAs(look),
    });
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(error.message));
    for (const { what, path, open, shown } of OPENED) {
      await test.step(what, async () => {
        await page.goto(path(ids[0] ?? 0));
        await open(page);
        await page.locator(shown).first().waitFor();
        expect.soft(await barriers(page), what).toEqual([]);
      });
    }
    await context.close();
    await instance.post('/api/jobs/kill', { ids, grace_ms: 100 });
  });
}

test('the keys are back where they were once a dialog is closed', async ({
  console: page,
  instance,
}) => {
  const id = await instance.add(LONG, { name: 'focused' });
  await instance.reaches(id, 'running');
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const closes = async (back: ReturnType<typeof button>, role: 'dialog' | 'alertdialog') => {
    await page.getByRole(role).waitFor();
    await page.keyboard.press('Escape');
    await expect(page.getByRole(role)).toHaveCount(0);
    await expect(back).toBeFocused();
  };
  await page.goto(`/ui/state/${id}`);
  for (const [name, role] of [
    ['Edit and resubmit', 'dialog'],
    ['Kill', 'alertdialog'],
  ] as const) {
    await button(name).press('Enter');
    await closes(button(name), role);
  }
  await page.goto(`/ui/state/${await waiting(instance, 'focused-too')}`);
  await button('More actions').press('Enter');
  await page.getByRole('menuitem', { name: 'Change the priority' }).press('Enter');
  await closes(button('More actions'), 'dialog');
  await page.goto('/ui/gpu');
  await button('History of GPU 1').press('Enter');
  await closes(button('History of GPU 1'), 'dialog');
  await page.goto('/ui/setting');
  await button('New token').press('Enter');
  await closes(button('New token'), 'dialog');
  await page.goto('/ui/state?q=focused');
  const row = page.locator(`[data-job="${id}"]`);
  await row.focus();
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await expect(row).toBeFocused();
  const all = await instance.jobs({ q: 'focused' });
  await instance.post('/api/jobs/kill', { ids: all.map((job) => job.id), grace_ms: 100 });
});
