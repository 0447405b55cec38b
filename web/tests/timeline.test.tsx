import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { LanguageProvider } from '../src/i18n';
import Timeline from '../src/pages/state/timeline';

const HOUR = 3_600_000;
let asked: number[];

beforeEach(() => {
  queryClient.clear();
  asked = [];
  vi.stubGlobal('fetch', (request: Request) => {
    const { pathname, searchParams } = new URL(request.url);
    const span = Number(searchParams.get('to')) - Number(searchParams.get('from'));
    if (pathname === '/api/timeline') asked.push(span / HOUR);
    const started = Date.now() - 20 * HOUR;
    const attempt = (job: number, hour: number, ...gpu_uuids: string[]) => ({
      attempt: job,
      job,
      name: `job-${job}`,
      state: 'running',
      started_at: started + hour * HOUR,
      ended_at: null,
      gpu_uuids,
      number: 1,
    });
    const attempts =
      span < 20 * HOUR
        ? []
        : [attempt(1, 0, 'a', 'b'), attempt(2, 1, 'a'), attempt(3, 9, 'a'), attempt(4, 8, 'b')];
    const gpus = ['a', 'b'].map((uuid, index) => ({ uuid, index }));
    return Promise.resolve(
      Response.json(pathname === '/api/gpus' ? { gpus } : { attempts, more: false, gpus }),
    );
  });
});

const show = () =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <Timeline />
      </LanguageProvider>
    </QueryClientProvider>,
  );

it('shows what ran long ago, over as long as it takes, and then what is chosen', async () => {
  show();
  const choice = (name: string) => screen.getByRole('radio', { name });
  await waitFor(() => expect(choice('1 day').getAttribute('aria-checked')).toBe('true'));
  expect(screen.getAllByRole('button', { name: /running/ })).toHaveLength(5);
  expect(asked).toEqual([168]);
  await userEvent.click(choice('6 hours'));
  await waitFor(() => expect(asked).toEqual([168, 6]));
  expect(choice('6 hours').getAttribute('aria-checked')).toBe('true');
});

it('is one stop on the way with Tab, and arrows lead from bar to bar', async () => {
  show();
  await screen.findByText('GPU 1'); // known by now in which order the cards are
  const bars = screen.getAllByRole('button', { name: /running/ });
  expect(bars.filter((bar) => bar.tabIndex === 0)).toEqual([bars[0]]);
  bars[0]?.focus();
  const at = async (key: string) => {
    await userEvent.keyboard(`{${key}}`);
    const now = document.activeElement;
    expect(bars.filter((bar) => bar.tabIndex === 0)).toEqual([now]);
    return `${now?.closest('.gantt-lane')?.firstChild?.textContent} ${now?.textContent}`;
  };
  expect(await at('ArrowLeft')).toBe('GPU 0 job-1');
  expect(await at('ArrowRight')).toBe('GPU 0 job-2');
  expect(await at('ArrowDown')).toBe('GPU 1 job-1');
  expect(await at('End')).toBe('GPU 1 job-4');
  expect(await at('ArrowDown')).toBe('GPU 1 job-4');
  expect(await at('ArrowUp')).toBe('GPU 0 job-3');
  expect(await at('Home')).toBe('GPU 0 job-1');
});
