// GPUs, files, rules, results and settings.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { SAMPLES } from '../src/pages/command/samples';
import { barriers, expect, test, until, waiting, write, type Instance } from './berth';
import type { Page } from '@playwright/test';

/** What was done last. */
const undo = (page: Page) => page.getByRole('button', { name: 'Undo' }).last().click();

const gpuState = async (instance: Instance, index: number) => {
  const { gpus } = (await instance.get('/api/gpus')) as {
    gpus: { index: number; state: string }[];
  };
  return gpus.find((gpu) => gpu.index === index)?.state;
};

/** What a page has copied. */
const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText());

test('a GPU is drained and used again', async ({ console: page, instance }) => {
  await page.goto('/ui/gpu');
  const actions = page.getByRole('button', { name: 'Actions for GPU 3' });
  const choose = async (item: RegExp) => {
    await actions.click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  await choose(/Drain/);
  await until('it is drained', async () => (await gpuState(instance, 3)) === 'drained');
  await expect(page.locator('.gpu-card').nth(3)).toContainText('drained');
  await undo(page);
  await until('it is used again', async () => (await gpuState(instance, 3)) !== 'drained');
  await choose(/Drain/);
  await until('it is drained', async () => (await gpuState(instance, 3)) === 'drained');
  await choose(/Use it again/);
  await expect(page.getByText('GPU 3 is used again.')).toBeVisible();
  expect(await gpuState(instance, 3)).not.toBe('drained');
});

test('the UUID of a GPU is copied', async ({ console: page, instance }) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const { gpus } = (await instance.get('/api/gpus')) as { gpus: { uuid: string }[] };
  await page.goto('/ui/gpu');
  await page.getByRole('button', { name: 'Actions for GPU 2' }).click();
  await page.getByRole('menuitem', { name: 'Copy the UUID' }).click();
  await expect.poll(() => copied(page)).toBe(gpus[2]?.uuid);
  await expect(page.getByText('Copied.')).toBeVisible();
});

test('strangers on a card are told apart, and so is a card that is left to them', async ({
  console: page,
  instance,
}) => {
  const leave = instance.stranger(3, '3GiB', 90);
  await page.goto('/ui/gpu');
  const card = page.locator('.gpu-card').nth(3);
  await expect(card).toContainText(/others \d+ GiB/);
  // Another test may have left somebody else there.
  const stranger = card.locator('li', { hasText: 'berth-simgpu hold 3 --memory 3GiB' });
  await expect(stranger).toHaveText(/pid \d+ · since \d\d:\d\d/);
  await expect(stranger).not.toHaveText(/uid/);
  await instance.post('/api/rules', { set: [{ key: 'gpu_left', value: '1' }] });
  await expect(card.locator('.gpu-state')).toHaveText('reserved');
  await expect(card).toContainText('left to others by the rule gpu_left=1');
  await instance.post('/api/rules', { unset: ['gpu_left'] });
  await expect(card.locator('.gpu-state')).toHaveText('others');
  leave();
  await expect(stranger).toHaveCount(0);
});

test('a GPU shows what runs on it, what is promised, and its history', async ({
  console: page,
  instance,
}) => {
  const id = await instance.add('berth-simgpu train --memory 3GiB --time 600s', {
    name: 'on-card',
    gpus: { min: 1, max: 1 },
    gpu_memory: 6 * 1024 ** 3,
  });
  await instance.reaches(id, 'running');
  await page.goto('/ui/gpu');
  const card = page.locator('.gpu-card', {
    has: page.getByRole('link', { name: `job ${id}`, exact: true }),
  });
  await expect(card).toContainText('own use');
  await expect(card).toContainText('promised');
  await card.getByRole('button', { name: /^History/ }).click();
  await expect(page.getByRole('dialog').locator('.chart').first()).toBeVisible();
  await page.getByRole('radio', { name: '1 week' }).click();
  await expect(page.getByRole('dialog').locator('.chart').first()).toBeVisible();
  await page.keyboard.press('Escape');
  await page.goto(`/ui/state/${id}`);
  await expect(page.locator('#resources + *, .panel:has(#resources)').first()).toBeVisible();
  await expect(page.locator('.panel:has(#resources) .chart')).toBeVisible();
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });
});

const FEDWHAT = `jobs:
  - {name: base, config: base.yaml, algorithm: FedAvg, log_path: logs/base.log}
  - {name: other, config: other.yaml, algorithm: FedProx, log_path: logs/other.log}
`;
const GPU_MANAGER = SAMPLES.gpu_manager.text;

for (const [dialect, name, text, jobs] of [
  ['native', 'jobs.yaml', 'version: 1\njobs:\n  - {name: a, gpus: 0, run: "true"}\n', 1],
  ['commands', 'command_gpu.txt', '1\ntrue\n8\n\n2\ntrue\n8\n', 2],
  ['commands', 'command_gpus.txt', '1\ntrue\n2\n8\n', 1],
  ['commands', 'command.txt', 'true\n1,8\n\ntrue\n2,8\n', 2],
  ['fedwhat', 'experiments.yaml', FEDWHAT, 2],
  ['gpu_manager', 'gpu_manager_config.json', GPU_MANAGER, 1],
  ['script', 'job.sh', '#!/bin/bash\n#SBATCH --job-name=s\ntrue\n', 1],
] as const) {
  test(`${name}, in the dialect ${dialect}, is checked while it is written`, async ({
    console: page,
    instance,
  }) => {
    for (const config of ['base', 'other']) {
      writeFileSync(path.join(instance.work, `${config}.yaml`), 'seed: 1\n');
    }
    await page.goto('/ui/command?view=file');
    await page.getByLabel('Format').selectOption(dialect);
    await page.getByLabel('File name').fill(name);
    await page.getByLabel('Directory').fill(instance.work);
    await write(page, text);
    await expect(page.locator('.check')).toContainText(
      `${jobs} ${jobs === 1 ? 'job' : 'jobs'}, read as`,
    );
  });
}

test('a mistake is shown at its line, and a right file is submitted', async ({
  console: page,
  instance,
}) => {
  await page.goto('/ui/command?view=file');
  await page.getByLabel('Directory').fill(instance.work);
  await write(page, 'version: 1\njobs:\n  - name: written\n    colour: red\n    run: echo hello\n');
  await expect(page.locator('.check')).toContainText('Line 4:');
  await expect(page.locator('.cm-lint-marker-error')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Submit' })).toBeDisabled();
  await write(page, 'version: 1\njobs:\n  - name: written\n    gpus: 0\n    run: echo hello\n');
  await page.getByRole('button', { name: 'Submit 1 job' }).click();
  await page.waitForURL(/\/ui\/state/);
  await expect(page.getByText('1 job was submitted.')).toBeVisible();
  await until(
    'it has run',
    async () => (await instance.jobs({ q: 'written' }))[0]?.state === 'succeeded',
  );
});

test('the editor completes keys', async ({ console: page }) => {
  await page.goto('/ui/command?view=file');
  await write(page, 'version: 1\njobs:\n  - run: a\n');
  await page.keyboard.type('    gpu_m');
  await expect(page.locator('.cm-tooltip-autocomplete')).toContainText('gpu_memory');
  await expect(page.locator('.cm-completionIcon')).toHaveCount(0);
});

test('a sweep is built, counted and submitted', async ({ console: page, instance }) => {
  await page.goto('/ui/command?view=sweep');
  await page.getByLabel('Command', { exact: true }).fill('echo {lr} {seed} {size}');
  await expect(page.getByText('No axis fills in {size}')).toBeVisible();
  await page.getByRole('button', { name: 'Add an axis' }).click();
  await page.getByLabel('Parameter').last().fill('size');
  await page.getByLabel('Values').last().fill('1..4');
  await page.getByLabel('Seeds').fill('1..2');
  await page.getByLabel('Name').fill('built');
  await page.getByLabel('GPUs', { exact: true }).fill('0');
  await page.getByLabel('GPU memory').fill('');
  await page.getByLabel('Directory').fill(instance.work);
  await page.getByRole('button', { name: 'Submit 24 jobs' }).dblclick();
  await page.waitForURL(/batch=/);
  await expect(page.locator('[data-job]').first()).toBeVisible();
  await until('they are there', async () => (await instance.jobs({ q: 'built' })).length === 24);
});

test('a sweep is edited as a file, and what was written there can be brought back', async ({
  console: page,
}) => {
  await page.goto('/ui/command?view=file');
  await write(page, 'version: 1\njobs:\n  - {name: mine, gpus: 0, run: echo mine}\n');
  await expect(page.locator('.check')).toContainText('1 job, read as');
  await page.getByRole('radio', { name: 'Sweep' }).click();
  await page.getByLabel('Values').first().fill('1..4');
  await page.getByLabel('Seeds').fill('');
  await page.getByRole('button', { name: 'Edit as a file' }).click();
  await expect(page).toHaveURL(/view=file$/);
  await expect(page.getByLabel('File name')).toHaveValue('sweep.yaml');
  await expect(page.locator('.cm-content')).toContainText('lr: "1..4"');
  await expect(page.locator('.check')).toContainText('4 jobs, read as');
  await undo(page);
  await expect(page.locator('.cm-content')).toContainText('echo mine');
  await expect(page.getByLabel('File name')).toHaveValue('jobs.yaml');
});

test('a sweep is written as on the command line', async ({ console: page }) => {
  await page.goto('/ui/command?view=sweep');
  await page.getByLabel('GPU memory').fill('');
  await page.getByLabel('Seeds').fill('');
  await page
    .getByLabel('Command', { exact: true })
    .fill('echo {lr} {port} {gpu_list} ${HOME} {{x}}');
  for (const [values, jobs] of [
    ['0..10..2', 6],
    ['log(1e-5, 1e-1, 5)', 5],
    ['3..1', 3],
    ['1..5000', 5000],
    ['0.1', 1],
  ] as const) {
    await page.getByLabel('Values').first().fill(values);
    const name = `Submit ${jobs} ${jobs === 1 ? 'job' : 'jobs'}`;
    await expect(page.getByRole('button', { name, exact: true })).toBeEnabled();
  }
  await expect(page.getByText('No axis fills in')).toHaveCount(0);
  await page.getByLabel('Values').first().fill('0..1:0.25');
  await expect(page.locator('.check')).toContainText('is not a range');
});

test('a command file is made, started, stopped, bound to a log, and deleted', async ({
  console: page,
  instance,
}) => {
  await page.goto('/ui/command');
  await page.getByRole('radio', { name: 'Several GPUs' }).click();
  // The first one stays for ever.
  await instance.post('/api/commands/multi/new', {});
  await page.getByRole('button', { name: 'New configuration' }).click();
  await page.getByRole('heading', { name: 'command_gpus_1.txt' }).waitFor();
  await page.locator('.cm-content').waitFor();
  await write(page, '1\nsleep 600\n9\n8\n\n1\nsleep 601\n9\n8\n');
  await page.getByText('not saved').waitFor();
  await page.locator('.rail').getByRole('link', { name: 'GPUs' }).click();
  await page.locator('.rail').getByRole('link', { name: 'Submit' }).click();
  await page.getByRole('button', { name: 'Configuration 1' }).click();
  await expect(page.locator('.cm-content')).toContainText('sleep 601');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.locator('.task')).toHaveCount(2);
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByText(/was started/)).toBeVisible();
  await expect(page.locator('.task .badge-queued')).toHaveCount(2);
  await expect(page.getByRole('button', { name: 'Start', exact: true })).toBeDisabled();
  const log = path.join(instance.work, 'own.log');
  writeFileSync(log, 'a line of the bound log\n');
  await page
    .getByRole('button', { name: /^Bind a log/ })
    .first()
    .click();
  await page.getByLabel('Path of the log').fill(log);
  await page.getByRole('dialog').getByRole('button', { name: 'Bind a log' }).click();
  await page.locator('.task').first().getByRole('button', { name: 'Log', exact: true }).click();
  await expect(page.getByRole('dialog')).toContainText('a line of the bound log');
  await page.keyboard.press('Escape');
  await page
    .getByRole('button', { name: /^Bind a log/ })
    .first()
    .click();
  await expect(page.getByLabel('Path of the log')).toHaveValue(log);
  await page.getByRole('dialog').getByRole('button', { name: 'Unbind' }).click();
  await expect(page.getByText('The binding is gone.')).toBeVisible();
  await expect(page.locator('.task').getByRole('button', { name: 'Log', exact: true })).toHaveCount(
    0,
  );
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Stop and kill' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop and kill' }).click();
  await expect(page.getByText(/starts nothing more/)).toBeVisible();
  await page.getByRole('button', { name: /^Delete command_gpus/ }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText(/was deleted/)).toBeVisible();
});

test('a command file begins with an example, and what runs of one that is stopped goes on', async ({
  console: page,
  instance,
}) => {
  await page.goto('/ui/command');
  // The first one stays for ever.
  await instance.post('/api/commands/single/new', {});
  await page.getByRole('button', { name: 'New configuration' }).click();
  // What explains itself in comments alone is not begun, and not wrong.
  await expect(page.locator('.cm-content')).toContainText('One task is a block of lines');
  await expect(page.locator('.check .error, .cm-lint-marker-error')).toHaveCount(0);
  await page.getByRole('button', { name: 'Begin with an example' }).click();
  await expect(page.locator('.cm-content')).toContainText('python train.py --lr 0.01');
  await expect(page.locator('.check')).toContainText('3 jobs, read as command file');
  await write(page, '1\nuntil test -e stopped; do sleep 0.1; done\n1\n\n1\necho never\n1\n');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.locator('.task .badge-running')).toHaveCount(1);
  const ids = (await instance.jobs({ state: 'queued,running' })).map((job) => job.id);
  const [first = 0, second = 0] = ids.sort((a, b) => a - b).slice(-2);
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Stop', exact: true }).click();
  await expect(page.getByRole('alertdialog')).toContainText('goes on to its end');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click();
  await instance.reaches(second, 'cancelled');
  expect(await instance.state(first)).toBe('running');
  await instance.add('touch stopped');
  await instance.reaches(first, 'succeeded');
  await expect(page.locator('.task .badge-succeeded')).toHaveCount(1);
});

test('of what two write into one command file somebody chooses', async ({
  console: page,
  instance,
}) => {
  const file = '/api/commands/single?config_index=0';
  const put = (text: string) => instance.ask('PUT', file, { text });
  await put('1\necho first\n1\n');
  await page.goto('/ui/command');
  await expect(page.locator('.cm-content')).toContainText('echo first');
  await write(page, '1\necho mine\n1\n');
  await put('1\necho theirs\n1\n');
  const choice = page.getByRole('alert');
  await expect(choice).toContainText('has been changed elsewhere');
  await choice.getByText('What is in the file now').click();
  await expect(choice).toContainText('echo theirs');
  await choice.getByRole('button', { name: 'Discard mine' }).click();
  await expect(page.locator('.cm-content')).toContainText('echo theirs');
  await undo(page);
  await choice.getByRole('button', { name: 'Overwrite' }).click();
  await expect(page.getByText('was saved')).toBeVisible();
  await expect(choice).toHaveCount(0);
  expect(await instance.get(`${file}&text=true`)).toMatchObject({ text: '1\necho mine\n1\n' });
});

test('a rule is tried, saved, and taken back', async ({ console: page, instance }) => {
  const held = await instance.add('sleep 600', { name: 'ruled', queue: 'ruled' });
  await page.goto('/ui/rule');
  await page.getByLabel('Search rules').fill('max_concurrent');
  await page.getByRole('textbox', { name: 'max_concurrent' }).fill('77');
  const preview = page.locator('.panel', {
    has: page.getByRole('heading', { name: 'What would this change?' }),
  });
  await expect(preview.locator('.preview')).toBeVisible();
  await preview.getByRole('button', { name: 'Apply for this run' }).click();
  await expect(page.getByText('1 rule changed.')).toBeVisible();
  const row = page.locator('.rule', { has: page.getByText('max_concurrent', { exact: true }) });
  await expect(row).toContainText('this run');
  await expect(page.locator('.history')).toContainText(/max_concurrent \S+ → 77/);
  await undo(page);
  await expect(row).toContainText('default');
  await instance.post('/api/jobs/kill', { ids: [held], grace_ms: 100 });
});

test('a long history of rules is scrolled by keys, and says who changed what', async ({
  console: page,
  instance,
}) => {
  for (let i = 1; i <= 30; i += 1) {
    await instance.post('/api/rules', { set: [{ key: 'hold_after', value: `${i}h` }] });
  }
  await page.goto('/ui/rule');
  const history = page.getByRole('group', { name: 'Changes' });
  await expect(history).toContainText(/this run\s*hold_after 29h → 30h/);
  expect(await barriers(page)).toEqual([]);
  await page.getByLabel('Search rules').fill('hold_after');
  await page.getByRole('textbox', { name: 'hold_after' }).fill('40h');
  await page.getByRole('button', { name: 'Apply for this run' }).click();
  await expect(history).toContainText(/this run · a browser\s*hold_after 30h → 40h/);
  await instance.post('/api/rules', { unset: ['hold_after'] });
});

test('a preview names the jobs that would start', async ({ console: page, instance }) => {
  await instance.post('/api/rules', { set: [{ key: 'queue.narrow.limit', value: '1' }] });
  const first = await instance.add('sleep 600', { name: 'narrow-1', queue: 'narrow' });
  const second = await instance.add('sleep 600', { name: 'narrow-2', queue: 'narrow' });
  await instance.reaches(first, 'running');
  await page.goto('/ui/rule');
  await page.getByLabel('Search rules').fill('queue.narrow');
  await page.getByRole('textbox', { name: 'queue.narrow.limit' }).fill('2');
  await expect(page.locator('.preview')).toContainText('1 would start at once');
  await expect(page.locator('.preview').getByRole('link', { name: String(second) })).toBeVisible();
  await page.getByRole('button', { name: 'Apply for this run' }).click();
  await instance.reaches(second, 'running');
  await instance.post('/api/jobs/kill', { ids: [first, second], grace_ms: 100 });
});

test('a rule is saved in berth.yaml, and taken back there', async ({ console: page, instance }) => {
  const file = path.join(instance.dir, 'berth.yaml');
  const saved = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  await page.goto('/ui/rule');
  await page.getByLabel('Search rules').fill('max_wait');
  const row = page.locator('.rule', { has: page.getByText('max_wait', { exact: true }) });
  await page.getByRole('textbox', { name: 'max_wait' }).fill('3h');
  await page.getByRole('button', { name: 'Save in berth.yaml' }).click();
  await expect(row.locator('.source')).toHaveText('berth.yaml');
  expect(saved()).toContain('max_wait: 3h');
  await row.getByRole('button', { name: 'Take back max_wait' }).click();
  await expect(row.locator('.rule-value')).toContainText('taken back');
  // Thought better of, and again.
  await row.getByRole('button', { name: 'Undo the change of max_wait' }).click();
  await expect(page.getByRole('textbox', { name: 'max_wait' })).toHaveValue('3h');
  await row.getByRole('button', { name: 'Take back max_wait' }).click();
  await page.getByRole('button', { name: 'Save in berth.yaml' }).click();
  await expect(row.locator('.source')).toHaveText('default');
  expect(saved()).not.toContain('max_wait');
});

test('queues and batches have rules of their own', async ({ console: page, instance }) => {
  const held = await waiting(instance, 'scoped', { queue: 'scoped' });
  const { batch, ids } = (await instance.post('/api/jobfiles', {
    text: 'version: 1\nname: scoped-batch\njobs:\n  - {gpus: 64, run: "true"}\n',
    name: 'scoped.yaml',
    dialect: 'native',
    cwd: instance.work,
  })) as { batch: number; ids: number[] };
  const row = (key: string) => page.locator('.rule', { has: page.getByText(key, { exact: true }) });
  const value = async (key: string, scope: string) => {
    const { rules } = (await instance.get(`/api/rules?${scope}`)) as {
      rules: { key: string; value: string }[];
    };
    return rules.find((rule) => rule.key === key)?.value;
  };
  await page.goto('/ui/rule');
  const whose = page.getByLabel('Whose rules');
  const apply = page.getByRole('button', { name: 'Apply', exact: true });

  await whose.selectOption('Queue scoped');
  await page.getByRole('textbox', { name: 'quiet_time' }).fill('7m');
  await expect(page.locator('.preview')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save in berth.yaml' })).toHaveCount(0);
  await apply.click();
  await expect(row('quiet_time').locator('.source')).toHaveText('Queue scoped');
  expect(await value('quiet_time', 'queue=scoped')).toBe('7m');
  expect(await value('quiet_time', '')).toBe('1m');
  await row('quiet_time').getByRole('button', { name: 'Take back quiet_time' }).click();
  await apply.click();
  await expect(row('quiet_time').locator('.source')).toHaveText('default');
  expect(await value('quiet_time', 'queue=scoped')).toBe('1m');

  await whose.selectOption(`Batch ${batch} · scoped-batch`);
  await page.getByLabel('strategy', { exact: true }).selectOption('pack');
  await apply.click();
  await expect(row('strategy').locator('.source')).toHaveText(`Batch ${batch}`);
  expect(await value('strategy', `batch=${batch}`)).toBe('pack');
  expect(await value('strategy', '')).toBe('most_free');
  await undo(page);
  await expect(row('strategy').locator('.source')).toHaveText('default');
  await instance.post('/api/jobs/kill', { ids: [held, ids[0]] });
});

test('results are drawn and exported', async ({ console: page, instance }) => {
  const text =
    'version: 1\nname: scored\njobs:\n  - name: scored\n    gpus: 0\n    matrix: {lr: [1, 2], seed: [1, 2]}\n    run: berth report --metric score={lr}{seed}\n';
  const sent = (await instance.post('/api/jobfiles', {
    text,
    name: 'r.yaml',
    dialect: 'native',
    cwd: instance.work,
  })) as { batch: number; ids: [number, number] };
  await instance.reaches(sent.ids[1], 'succeeded');
  await until(
    'all have run',
    async () =>
      (await instance.jobs({ batch: String(sent.batch), state: 'succeeded' })).length === 4,
  );
  await page.goto(`/ui/results?batch=${sent.batch}`);
  await expect(page.locator('.plot-dot')).toHaveCount(2);
  await expect(page.getByRole('cell', { name: '11.5' })).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const file = await (await download).path();
  expect(readFileSync(file, 'utf8')).toContain('1,2,0,11.5');
});

test('a metric and a parameter are chosen, and all of it is exported as JSON', async ({
  console: page,
  instance,
}) => {
  const run = 'berth report --metric loss={lr}{width} --metric score=9{lr}';
  const sent = (await instance.post('/api/jobfiles', {
    text: `version: 1\nname: both\njobs:\n  - name: both\n    gpus: 0\n    matrix: {lr: [1, 2, 3], width: [4, 5]}\n    run: ${run}\n`,
    name: 'both.yaml',
    dialect: 'native',
    cwd: instance.work,
  })) as { batch: number };
  await until(
    'all have run',
    async () =>
      (await instance.jobs({ batch: String(sent.batch), state: 'succeeded' })).length === 6,
  );
  await page.goto(`/ui/results?batch=${sent.batch}`);
  const drawn = page.locator('.plot');
  await expect(drawn).toHaveAccessibleName(/^loss against lr/);
  await page.getByLabel('Metric', { exact: true }).selectOption('score');
  await expect(drawn).toHaveAccessibleName(/^score against lr/);
  await page.getByLabel('Parameter', { exact: true }).selectOption('width');
  await expect(drawn).toHaveAccessibleName(/^score against width/);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'JSON' }).click();
  const saved = await download;
  expect(saved.suggestedFilename()).toBe(`results-${sent.batch}.json`);
  const results = JSON.parse(readFileSync(await saved.path(), 'utf8')) as {
    by: string[];
    groups: { params: Record<string, string>; metrics: Record<string, { mean: number }> }[];
  };
  expect(results.by).toEqual(['lr', 'width']);
  expect(results.groups).toHaveLength(6);
  const group = results.groups.find(({ params: { lr, width } }) => lr === '3' && width === '4');
  expect(group?.metrics).toMatchObject({ loss: { mean: 34 }, score: { mean: 93 } });
});

test('tokens are made, shown once, and revoked', async ({ console: page, instance, browser }) => {
  await page.goto('/ui/setting');
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Name').fill('for a script');
  await page.getByRole('button', { name: 'Make' }).click();
  const secret = await page.locator('.secret code').innerText();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('dialog').getByRole('button', { name: 'Copy' }).click();
  await expect(page.getByText('Copied.')).toBeVisible();
  expect(await copied(page)).toBe(secret);
  await page.getByRole('button', { name: 'Done' }).click();
  const ask = () =>
    fetch(`${instance.origin}/api/status`, { headers: { Authorization: `Bearer ${secret}` } });
  expect((await ask()).status).toBe(200);

  // The same token, in a browser: it may look; what it may not do is there, disabled, and says why.
  const context = await browser.newContext({
    baseURL: instance.origin,
    locale: 'en-GB',
    extraHTTPHeaders: { Authorization: `Bearer ${secret}` },
  });
  const reader = await context.newPage();
  await reader.goto('/ui/gpu');
  await expect(reader.getByText('You may look, but not change anything')).toBeVisible();
  await reader.getByRole('button', { name: 'Actions for GPU 0' }).click();
  await expect(reader.getByRole('menuitem', { name: /Drain/ })).toBeDisabled();
  await reader.keyboard.press('Escape');
  const id = await instance.add('sleep 600', { name: 'read-only' });
  await reader.goto(`/ui/state/${id}`);
  await expect(reader.locator('h1')).toHaveText('read-only');
  for (const name of ['Pause', 'Kill', 'Edit and resubmit', 'Clone']) {
    const action = reader.getByRole('button', { name });
    await expect(action).toBeDisabled();
    await expect(action).toHaveAttribute('title', 'This token is for reading only.');
  }
  await reader.goto('/ui/command');
  await expect(reader.getByRole('button', { name: 'Start' })).toBeDisabled();
  await reader.goto('/ui/rule');
  await expect(reader.getByRole('textbox', { name: 'max_concurrent' })).toBeDisabled();
  await context.close();
  await instance.post('/api/jobs/kill', { ids: [id], grace_ms: 100 });

  await page.getByRole('button', { name: 'Revoke for a script' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByText('for a script was revoked.')).toBeVisible();
  expect((await ask()).status).toBe(401);
});

test('theme and language are switched and remembered', async ({ console: page }) => {
  await page.goto('/ui/setting');
  await page.getByRole('radio', { name: 'Dark' }).click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.getByRole('radio', { name: '中文' }).click();
  await expect(page.locator('h1')).toHaveText('设置');
  await page.reload();
  await expect(page.locator('h1')).toHaveText('设置');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});

test('keys lead everywhere, and ? tells which', async ({ console: page }) => {
  await page.goto('/ui/gpu');
  await page.locator('.gpu-card').first().waitFor();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' })).toBeVisible();
  await page.keyboard.press('Escape');
  for (const [keys, place] of [
    ['gj', 'state'],
    ['gs', 'command'],
    ['ge', 'results'],
    ['gr', 'rule'],
    ['go', 'setting'],
    ['gg', 'gpu'],
  ] as const) {
    await page.keyboard.type(keys);
    await page.waitForURL(new RegExp(`/ui/${place}$`));
  }
  await page.keyboard.press('/');
  await expect(page.getByLabel('Search names')).toBeFocused();
});

test('a browser signs out', async ({ browser, instance }) => {
  const context = await browser.newContext({ baseURL: instance.origin, locale: 'en-GB' });
  const { url } = await instance.ui(instance.port);
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForURL(/\/ui\//);
  await page.goto('/ui/setting');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByText('This browser is not signed in')).toBeVisible();
  await context.close();
});
