import { QueryClientProvider } from '@tanstack/react-query';
import { act, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState, type ReactNode } from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { queryClient } from '../src/api/data';
import type { Gpu } from '../src/api/types';
import { LanguageProvider, preferred, translate, type Key } from '../src/i18n';
import { en } from '../src/i18n/en';
import { zh } from '../src/i18n/zh';
import { useKeys } from '../src/lib/keys';
import { GpuCard } from '../src/pages/gpu/card';
import { Progress } from '../src/pages/state/groups';
import { Banner } from '../src/shell/banner';
import { Button, StateBadge } from '../src/ui/basic';
import { Dialog, Menu, OverlayProvider, useOverlays } from '../src/ui/overlay';

const page = (children: ReactNode) =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>{children}</OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );

beforeEach(() => {
  queryClient.clear();
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('refused')));
});

const placeholders = (text: string) =>
  [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();

describe('the two languages', () => {
  it('fill in the same values', () => {
    for (const key of Object.keys(en) as Key[]) {
      expect(placeholders(zh[key]), key).toEqual(placeholders(en[key]));
    }
  });
  it('are chosen by what the browser asks for', () => {
    expect(preferred(['de', 'zh-TW', 'en'])).toBe('zh');
    expect(preferred(['en-GB', 'zh'])).toBe('en');
    expect(preferred([])).toBe('en');
  });
  it('leave alone what is not filled in', () => {
    expect(translate('en', 'gpu.job', { id: 3 })).toBe('job 3');
    expect(translate('zh', 'gpu.job')).toBe('任务 {id}');
  });
  it('count', () => {
    expect(translate('en', 'file.done', { count: 1 })).toBe('1 job was submitted.');
    expect(translate('en', 'file.done', { count: '1,200' })).toBe('1,200 jobs were submitted.');
    expect(translate('zh', 'file.done', { count: 1 })).not.toContain('|');
  });
  it('say that nobody answered', async () => {
    await expect(api.pause([1])).rejects.toThrow('The daemon does not answer.');
    localStorage.setItem('berth.language', 'zh');
    await expect(api.pause([1])).rejects.toThrow('守护进程没有响应。');
  });
  it('are remembered', () => {
    localStorage.setItem('berth.language', 'zh');
    page(<StateBadge state="running" />);
    expect(screen.getByText('运行中')).toBeTruthy();
    expect(document.documentElement.lang).toBe('zh-CN');
  });
});

function Asker({ onAnswer, undo }: { onAnswer: (yes: boolean) => void; undo: () => unknown }) {
  const { confirm, say } = useOverlays();
  return (
    <>
      <Button
        onClick={() => void confirm({ title: 'Sure?', text: 'Gone', action: 'Do' }).then(onAnswer)}
      >
        ask
      </Button>
      <Button onClick={() => say('done', { undo })}>say</Button>
    </>
  );
}

describe('questions and remarks', () => {
  it('act only when somebody says so', async () => {
    const answers: boolean[] = [];
    page(<Asker onAnswer={(yes) => answers.push(yes)} undo={() => undefined} />);
    await userEvent.click(screen.getByText('ask'));
    await userEvent.click(screen.getByText('Cancel'));
    await userEvent.click(screen.getByText('ask'));
    await userEvent.click(screen.getByText('Do'));
    expect(answers).toEqual([false, true]);
  });
  it('offer a way back, once', async () => {
    const undo = vi.fn();
    page(<Asker onAnswer={() => undefined} undo={undo} />);
    await userEvent.click(screen.getByText('say'));
    await userEvent.click(screen.getByText('Undo'));
    expect(undo).toHaveBeenCalledOnce();
    expect(screen.queryByText('done')).toBeNull();
  });
  it('tell where the way back was none', async () => {
    const undo = () => Promise.reject(new Error('it has ended already'));
    page(<Asker onAnswer={() => undefined} undo={undo} />);
    await userEvent.click(screen.getByText('say'));
    await userEvent.click(screen.getByText('Undo'));
    expect(await screen.findByText('it has ended already')).toBeTruthy();
  });
});

function Opener() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>open</Button>
      <Menu
        trigger={<Button>menu</Button>}
        items={[{ label: 'chosen', onSelect: () => setOpen(true) }]}
      />
      {open && (
        <Dialog open onClose={() => setOpen(false)} title="One">
          <input aria-label="first" autoFocus />
        </Dialog>
      )}
    </>
  );
}

describe('the focus', () => {
  const closed = async (button: string) => {
    await userEvent.keyboard('{Escape}');
    await waitFor(() => expect(document.activeElement?.textContent).toBe(button));
  };
  it('is where it was once a dialog is closed', async () => {
    page(<Opener />);
    await userEvent.click(screen.getByText('open'));
    expect(document.activeElement).toBe(screen.getByLabelText('first'));
    await closed('open');
  });
  it('is at the button of the menu in which the dialog was chosen', async () => {
    page(<Opener />);
    await userEvent.click(screen.getByText('menu'));
    await userEvent.click(await screen.findByText('chosen'));
    await screen.findByRole('dialog');
    await closed('menu');
  });
  it('is where it was once a question is answered', async () => {
    page(<Asker onAnswer={() => undefined} undo={() => undefined} />);
    await userEvent.click(screen.getByText('ask'));
    await screen.findByRole('alertdialog');
    await closed('ask');
  });
});

function Keyed({ onKey }: { onKey: (key: string) => void }) {
  useKeys({ j: () => onKey('j'), 'g j': () => onKey('g j') });
  return <input aria-label="field" />;
}

describe('a dialog', () => {
  const beside = async (children: ReactNode) => {
    const onClose = vi.fn();
    page(
      <Dialog open onClose={onClose} title="One">
        {children}
      </Dialog>,
    );
    // Whatever is beside it cannot be pointed at otherwise.
    await userEvent.setup({ pointerEventsCheck: 0 }).click(document.body);
    return onClose;
  };
  it('closes by a click beside it', async () => {
    expect(await beside(<p>words</p>)).toHaveBeenCalledOnce();
  });
  it('stays if it has a form, and closes by its button', async () => {
    const onClose = await beside(<form />);
    expect(onClose).not.toHaveBeenCalled();
    await userEvent.click(screen.getByRole('button', { name: 'Close' }));
    expect(onClose).toHaveBeenCalledOnce();
  });
});

describe('keys', () => {
  it('work alone and in pairs, and not while somebody writes', async () => {
    const seen: string[] = [];
    page(<Keyed onKey={(key) => seen.push(key)} />);
    await userEvent.keyboard('j');
    await userEvent.keyboard('gj');
    await userEvent.type(screen.getByLabelText('field'), 'j');
    expect(seen).toEqual(['j', 'g j']);
  });
});

const gpu = {
  index: 3,
  uuid: 'GPU-3',
  name: 'Card',
  node: null,
  memory_total: 24 * 1024 ** 3,
  memory_used: 12 * 1024 ** 3,
  memory_free: 12 * 1024 ** 3,
  utilization: 55,
  temperature: null,
  power_mw: 150_000,
  processes: [
    {
      pid: 100,
      uid: 1000,
      user: 'alice',
      name: 'python',
      command: '/usr/bin/python train.py --lr 0.1',
      since: Date.now(),
      memory: 4 * 1024 ** 3,
      job: 7,
      attempt: 1,
    },
    {
      pid: 101,
      uid: 1001,
      user: null,
      name: 'other',
      command: null,
      since: null,
      memory: 8 * 1024 ** 3,
      job: null,
      attempt: null,
    },
  ],
  state: 'claimed',
  trouble: null,
  reserved: null,
  lost: false,
  claims: [{ job: 7, attempt: 1, memory: 6 * 1024 ** 3 }],
} satisfies Gpu;

describe('a GPU', () => {
  it('tells its memory in words, too, and who runs what', () => {
    page(<GpuCard gpu={gpu} now={Date.now()} onHistory={() => undefined} />);
    expect(
      screen.getByLabelText('own use 4 GiB, others 8 GiB, promised 2 GiB, free 10 GiB'),
    ).toBeTruthy();
    expect(screen.getByText('job 7').getAttribute('href')).toBe('/state/7');
    expect(screen.getByText('uid 1001')).toBeTruthy();
    expect(screen.getByText('python train.py --lr 0.1').title).toBe(
      '/usr/bin/python train.py --lr 0.1',
    );
    expect(screen.getByText(/^alice · pid 100 · since \d\d:\d\d$/)).toBeTruthy();
    expect(screen.getByLabelText('Temperature: –, last 2 min')).toBeTruthy();
  });
  it('says what the driver does not say', () => {
    page(
      <GpuCard
        gpu={{ ...gpu, memory_used: null, processes: null }}
        now={Date.now()}
        onHistory={() => undefined}
      />,
    );
    expect(screen.getByText(/does not say how much memory/)).toBeTruthy();
    expect(screen.getByText(/does not say which processes/)).toBeTruthy();
  });
  it('says that the driver does not answer, where it does not', () => {
    const silent = { ...gpu, memory_used: null, processes: null };
    page(<GpuCard silent gpu={silent} now={Date.now()} onHistory={() => undefined} />);
    expect(screen.getByText(/driver does not answer/)).toBeTruthy();
    expect(screen.queryByText(/does not say/)).toBeNull();
  });
  it('shows what whoever may only look cannot do, and why', async () => {
    await act(() =>
      queryClient.setQueryData(['session'], { via: 'token', scope: 'read', user: 'u', csrf: null }),
    );
    page(<GpuCard gpu={gpu} now={Date.now()} onHistory={() => undefined} />);
    await userEvent.click(screen.getByLabelText('Actions for GPU 3'));
    const drain = await screen.findByRole('menuitem', { name: /Drain/ });
    expect(drain.getAttribute('aria-disabled')).toBe('true');
    expect(drain.title).toContain('for reading');
    await act(() =>
      queryClient.setQueryData(['session'], { via: 'token', scope: 'full', user: 'u', csrf: null }),
    );
    await waitFor(() => expect(drain.getAttribute('aria-disabled')).toBeNull());
  });
});

describe('an instance that is paused', () => {
  it('shows whoever may only look how it would go on, and why they cannot', () => {
    act(() => {
      queryClient.setQueryData(['session'], { via: 'token', scope: 'read', user: 'u', csrf: null });
      queryClient.setQueryData(['status'], { paused: true, space: {}, probe: {} });
    });
    page(<Banner />);
    const resume = screen.getByText('Resume').closest('button');
    expect(resume?.disabled).toBe(true);
    expect(resume?.title).toContain('for reading');
  });
});

describe('progress', () => {
  it('is told in words, too', () => {
    const counts = {
      queued: 1,
      running: 0,
      paused: 0,
      succeeded: 3,
      failed: 1,
      killed: 0,
      cancelled: 0,
    };
    page(<Progress counts={counts} />);
    expect(screen.getByLabelText('queued 1, succeeded 3, failed 1')).toBeTruthy();
  });
});
