// An instance of berth for tests, and a browser that is signed in to it.

import { AxeBuilder } from '@axe-core/playwright';
import {
  test as base,
  expect,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from '@playwright/test';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, existsSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const bin = path.join(process.env['BERTH_BUILD'] ?? path.resolve('../build'), 'bin');
const PATIENCE = 60_000;

export interface Link {
  url: string;
  port: number;
}

export class Instance {
  readonly dir: string;
  /** Where commands run; nothing else is there. */
  readonly work: string;
  private daemon: ChildProcess | null = null;
  private readonly strangers: ChildProcess[] = [];
  port = 0;

  constructor(private readonly gpus: string | null) {
    const root = mkdtempSync(path.join(tmpdir(), 'berth-e2e-'));
    this.dir = path.join(root, 'd');
    this.work = root;
  }

  get environment(): NodeJS.ProcessEnv {
    const own: NodeJS.ProcessEnv = {
      PATH: `${bin}:/usr/bin:/bin`,
      HOME: this.work,
      LANG: 'C.UTF-8',
      BERTH_DIR: this.dir,
    };
    if (this.gpus) own['BERTH_GPUS'] = this.gpus;
    return own;
  }

  async start(): Promise<void> {
    this.daemon = spawn(path.join(bin, 'berthd'), [], {
      env: this.environment,
      stdio: 'ignore',
      cwd: this.work,
    });
    await until('the daemon answers', () => this.get('/api/status').then(Boolean, () => false));
  }

  /** Without a chance to put anything in order. */
  async crash(): Promise<void> {
    await this.end('SIGKILL');
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const daemon = this.daemon;
    this.daemon = null;
    if (daemon?.exitCode !== null) return;
    const gone = new Promise((resolve) => daemon.once('exit', resolve));
    daemon.kill(signal);
    await gone;
  }

  /** Somebody who does not use berth, on a simulated card. Gone when the function it gives is called. */
  stranger(gpu: number, memory: string, utilization: number): () => void {
    const words = ['hold', String(gpu), '--memory', memory, '--util', String(utilization)];
    const process = spawn(path.join(bin, 'berth-simgpu'), words, {
      env: { ...this.environment, BERTH_SIM_DIR: path.join(this.dir, 'simgpu') },
      stdio: 'ignore',
    });
    this.strangers.push(process);
    return () => void process.kill();
  }

  async close(): Promise<void> {
    for (const stranger of this.strangers) stranger.kill();
    if (this.daemon) {
      const open = await this.jobs({ state: 'queued,running,paused' }).catch(() => []);
      if (open.length) await this.post('/api/jobs/kill', { all: true, grace_ms: 100 });
      await until('nothing runs', async () => {
        const left = await this.jobs({ state: 'running,paused' });
        return left.length === 0;
      }).catch(() => undefined);
    }
    await this.end('SIGTERM');
    if (existsSync(this.work)) rmSync(this.work, { recursive: true, force: true, maxRetries: 5 });
  }

  async ask(method: string, target: string, body?: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? null : JSON.stringify(body);
      const sent = request(
        {
          socketPath: path.join(this.dir, 'sock'),
          method,
          path: target,
          headers: {
            Host: 'berth',
            ...(text
              ? { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }
              : {}),
          },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () => {
            const all = Buffer.concat(parts).toString();
            if ((response.statusCode ?? 0) >= 400) reject(new Error(`${method} ${target}: ${all}`));
            else resolve(all ? JSON.parse(all) : null);
          });
        },
      );
      sent.on('error', reject);
      sent.end(text ?? undefined);
    });
  }
  get = (target: string) => this.ask('GET', target);
  post = (target: string, body: unknown) => this.ask('POST', target, body);

  async jobs(
    query: Record<string, string> = {},
  ): Promise<{ id: number; state: string; name: string; priority: number; queue: string }[]> {
    const page = (await this.get(
      `/api/jobs?${new URLSearchParams({ limit: '10000', ...query })}`,
    )) as {
      jobs: { id: number; state: string; name: string; priority: number; queue: string }[];
    };
    return page.jobs;
  }
  async state(id: number): Promise<string> {
    const [job] = await this.jobs({ ids: String(id) });
    return job?.state ?? 'unknown';
  }
  reaches(id: number, state: string): Promise<void> {
    return until(`job ${id} is ${state}`, async () => (await this.state(id)) === state);
  }

  async berth(...words: string[]): Promise<string> {
    const { stdout } = await run(path.join(bin, 'berth'), words, {
      env: this.environment,
      cwd: this.work,
    });
    return stdout;
  }

  /** The id of a new job that runs `command` in a shell. */
  async add(command: string, options: Record<string, unknown> = {}): Promise<number> {
    const { commands, ...rest } = options;
    const answer = (await this.post('/api/jobs', {
      key: `e2e-${Math.random()}`,
      environment: Object.entries(this.environment).map(([name, value]) => `${name}=${value}`),
      jobs: [
        {
          name: command.slice(0, 40),
          cwd: this.work,
          gpus: { min: 0, max: 0 },
          commands: commands ?? [{ shell: true, argv: [command] }],
          ...rest,
        },
      ],
    })) as { ids: [number, number] };
    return answer.ids[0];
  }

  async ui(port = 0): Promise<Link> {
    const link = (await this.post('/api/ui', port ? { port } : {})) as Link;
    this.port = link.port;
    return link;
  }
  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }
}

export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`after ${PATIENCE / 1000} s still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A job that waits for cards that nobody has. */
export const waiting = (instance: Instance, name: string, more = {}) =>
  instance.add('true', { name, gpus: { min: 64, max: 64 }, ...more });

export async function signIn(context: BrowserContext, instance: Instance): Promise<void> {
  const { url } = await instance.ui(instance.port);
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForURL(/\/ui\//);
  await page.close();
}

/** In the editor, in place of what stands there. */
export async function write(page: Page, text: string) {
  const editor = page.locator('.cm-content');
  await editor.click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text);
}

export interface Look {
  width: 1440 | 1024 | 390;
  theme: 'light' | 'dark';
  language: 'en' | 'zh';
}

export const LOOKS: readonly Look[] = ([1440, 1024, 390] as const).flatMap((width) =>
  (['light', 'dark'] as const).flatMap((theme) =>
    (['en', 'zh'] as const).map((language) => ({ width, theme, language })),
  ),
);

export const title = ({ width, theme, language }: Look) => `${width} px, ${theme}, ${language}`;

/** A browser whose owner has chosen nothing in the console looks at it like this. */
export const seenAs = ({ width, theme, language }: Look): BrowserContextOptions => ({
  viewport: { width, height: width === 390 ? 844 : 900 },
  colorScheme: theme,
  locale: language === 'zh' ? 'zh-CN' : 'en-GB',
  reducedMotion: 'reduce', // a colour on its way to another one is neither
});

/** A menu lies beside the page's landmarks, as a dialog does, and needs to be in none of them either. */
const BESIDE = 'dialog, [role=dialog], [role=alertdialog], [role=menu], svg';
const RULES = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
  checks: { region: { options: { regionMatcher: BESIDE } } },
};

/** Problems that axe finds, in words. */
export async function barriers(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).options(RULES).analyze();
  return violations.map(
    (one) =>
      `${one.id}: ${one.help} at ${one.nodes
        .map((node) => node.target.join(' '))
        .slice(0, 3)
        .join(' | ')}`,
  );
}

/** Nothing sticks out to the side, and the page scrolls within its frame: the window itself does not. */
export async function sticksOut(page: Page): Promise<boolean> {
  return page.evaluate(() => {
    const { scrollWidth, scrollHeight } = document.documentElement;
    return scrollWidth > window.innerWidth + 1 || scrollHeight > window.innerHeight + 1;
  });
}

interface Fixtures {
  /** A page of a browser that is signed in to the worker's instance. */
  console: Page;
  errors: string[];
}
interface WorkerFixtures {
  instance: Instance;
  cookies: Awaited<ReturnType<BrowserContext['storageState']>>;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  instance: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const instance = new Instance('sim:4x24GiB');
      await instance.start();
      await instance.ui();
      await use(instance);
      await instance.close();
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  cookies: [
    async ({ browser, instance }, use) => {
      const context = await browser.newContext();
      await signIn(context, instance);
      await use(await context.storageState());
      await context.close();
    },
    { scope: 'worker' },
  ],
  // eslint-disable-next-line no-empty-pattern
  errors: async ({}, use) => {
    const errors: string[] = [];
    await use(errors);
    expect(errors, 'errors in the browser').toEqual([]);
  },
  console: async ({ browser, instance, cookies, errors }, use) => {
    const context = await browser.newContext({
      storageState: cookies,
      baseURL: instance.origin,
      locale: 'en-GB',
    });
    const page = await context.newPage();
    page.on('pageerror', (error) => errors.push(error.message));
    await use(page);
    await context.close();
  },
});

export { expect };
