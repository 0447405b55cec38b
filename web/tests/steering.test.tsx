// Pages on which something is set, with a daemon that answers as it is told to.

import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import type { ReactNode } from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { LanguageProvider } from '../src/i18n';
import { SweepView } from '../src/pages/command/sweep';
import { GpuPage } from '../src/pages/gpu/page';
import RulePage from '../src/pages/rule/page';
import SettingPage from '../src/pages/setting/page';
import { OverlayProvider } from '../src/ui/overlay';

const page = (children: ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>{children}</OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );

type Answer = (body: Record<string, unknown>) => unknown;
let answers: Record<string, Answer> = {};

const STATUS = {
  version: '1',
  instance: '/work',
  space: {},
  problems: [],
  counts: {},
  loop: { tasks: 0, over_5ms: 0, longest_us: 0 },
  probe: { simulated: false, driver: 'none', age_ms: 1, error: null },
};

beforeEach(() => {
  queryClient.clear();
  queryClient.setQueryData(['session'], {
    via: 'cookie',
    scope: 'full',
    user: 'u',
    csrf: 'c',
    id: 2,
  });
  queryClient.setQueryData(['status'], STATUS);
  answers = {};
  vi.stubGlobal('fetch', async (request: Request) => {
    const { pathname } = new URL(request.url);
    const body = (await request.text()) || '{}';
    const answer = answers[pathname]?.(JSON.parse(body) as Record<string, unknown>);
    return answer === undefined
      ? Response.json({ error: { code: 'not_found', message: pathname } }, { status: 404 })
      : Response.json(answer);
  });
});

describe('the rules', () => {
  const limit = {
    key: 'max_concurrent',
    value: '0',
    default: '0',
    source: 'default',
    type: 'N',
    help: 'jobs that run at once',
  };
  const wrong = 'expected a whole number';
  beforeEach(() => {
    answers = {
      '/api/rules': () => ({ rules: [limit], problems: [] }),
      '/api/queues': () => ({ queues: [] }),
      '/api/batches': () => ({ batches: [], next: null }),
      '/api/rules/history': () => ({
        changes: Array.from({ length: 60 }, (_, i) => ({
          seq: 60 - i,
          time: 0,
          detail: `rules for this run, by token laptop: max_concurrent=${60 - i} (was ${59 - i})`,
        })),
        next: null,
      }),
      '/api/rules/preview': (body) => {
        const [asked] = body['set'] as { value: string }[];
        const good = /^\d+$/.test(asked?.value ?? '');
        const problems = good ? [] : [`max_concurrent: ${wrong}`];
        return { starts: [], waits: [], more: false, problems };
      },
    };
  });

  it('cannot be saved with a mistake, which is told beside the field', async () => {
    page(<RulePage />);
    const field = await screen.findByLabelText<HTMLInputElement>('max_concurrent');
    await userEvent.clear(field);
    await userEvent.type(field, 'many');
    await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'));
    const about = document.getElementById(field.getAttribute('aria-describedby') ?? '');
    expect(about?.textContent).toBe(wrong);
    for (const name of ['Apply for this run', 'Save in berth.yaml']) {
      expect(screen.getByText<HTMLButtonElement>(name).disabled).toBe(true);
    }
    await userEvent.clear(field);
    await userEvent.type(field, '3');
    await waitFor(() => expect(field.getAttribute('aria-invalid')).toBeNull());
    expect(screen.getByText<HTMLButtonElement>('Apply for this run').disabled).toBe(false);
  });

  it('have a history that keys can scroll, and that says what held before', async () => {
    page(<RulePage />);
    const region = await screen.findByRole('group', { name: 'Changes' });
    expect(region.tabIndex).toBe(0);
    const [newest] = within(region).getAllByRole('listitem');
    expect(newest?.textContent).toMatch(/this run · laptop.*max_concurrent 59 → 60$/);
  });
});

describe('a sweep', () => {
  const line = (text: string, begin: string) =>
    text.split('\n').findIndex((one) => one.trim().startsWith(begin)) + 1;
  beforeEach(() => {
    queryClient.setQueryData(['gpus'], [{ index: 0 }]);
    answers = {
      '/api/jobs': () => ({ jobs: [], next: null }),
      '/api/check': ({ text }) => {
        const at = line(String(text), 'gpus:');
        const problem = {
          severity: 'error',
          file: null,
          line: at,
          column: 1,
          message: 'no number',
        };
        return { dialect: 'native', jobs: [], total: 1, problems: at ? [problem] : [] };
      },
    };
  });

  it('is not begun with cards where there are none', async () => {
    queryClient.setQueryData(['gpus'], []);
    page(<SweepView onEdit={() => undefined} />);
    expect((await screen.findByLabelText<HTMLInputElement>('GPUs')).value).toBe('0');
    expect(screen.getByLabelText<HTMLInputElement>('GPU memory').value).toBe('');
  });

  it('warns of an axis that makes the same command again', async () => {
    page(<SweepView onEdit={() => undefined} />);
    const command = screen.getByLabelText('Command');
    await userEvent.clear(command);
    await userEvent.type(command, 'train {{lr}');
    expect(screen.getByText(/^The command does not use \{seed\}/)).toBeTruthy();
    expect(screen.queryByText(/does not use \{lr\}/)).toBeNull();
  });

  it('has its mistakes at their fields, under their names', async () => {
    page(<SweepView onEdit={() => undefined} />);
    const field = screen.getByLabelText('GPUs');
    await userEvent.type(field, 'x');
    await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'));
    expect(screen.getAllByText('no number')).toHaveLength(2);
    expect(screen.getByText('GPUs:').parentElement?.textContent).toBe('GPUs: no number');
    expect(screen.queryByText(/^Line/)).toBeNull();
  });
});

describe('a machine without cards', () => {
  it('says what runs there, and how to try more without ending anything', async () => {
    queryClient.setQueryData(['gpus'], []);
    page(<GpuPage />);
    expect(await screen.findByText('There is no GPU here')).toBeTruthy();
    expect(screen.getByText(/berth add --gpus 0/)).toBeTruthy();
    expect(screen.getByText(/^BERTH_DIR=.* berth ui$/)).toBeTruthy();
    expect(screen.queryByText('none')).toBeNull();
    expect(screen.getByText('GPUs are not looked for')).toBeTruthy();
  });
});

describe('tokens and sessions', () => {
  const token = (id: number, kind: 'token' | 'browser', name: string) => ({
    id,
    kind,
    name,
    scope: 'full',
    created: 0,
    expires: null,
    last_used: null,
  });
  it('are told apart, and the own one is marked', async () => {
    answers = {
      '/api/tokens': () => ({
        tokens: [
          token(1, 'browser', 'a browser'),
          token(2, 'browser', 'a browser'),
          token(3, 'token', 'laptop'),
        ],
      }),
    };
    page(<SettingPage />);
    const row = (await screen.findByText('this browser')).closest('tr');
    const rows = screen.getAllByRole('row').map((one) => one.textContent);
    expect(rows[1]).toBe('Tokens');
    expect(rows[2]).toContain('laptop');
    expect(rows[3]).toBe('Browsers that are signed in');
    expect(screen.getAllByText('this browser')).toHaveLength(1);
    if (row) await userEvent.click(within(row).getByText('Revoke'));
    expect(await screen.findByText(/This browser is signed out at once/)).toBeTruthy();
  });
});
