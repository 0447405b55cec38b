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
    const attempt = { attempt: 1, job: 1, name: 'a', state: 'running', started_at: started };
    const attempts =
      span < 20 * HOUR ? [] : [{ ...attempt, ended_at: null, gpu_uuids: [], number: 1 }];
    return Promise.resolve(
      new Response(JSON.stringify({ attempts, more: false, gpus: [] }), {
        headers: { 'Content-Type': 'application/json' },
      }),
    );
  });
});

it('shows what ran long ago, over as long as it takes, and then what is chosen', async () => {
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <Timeline />
      </LanguageProvider>
    </QueryClientProvider>,
  );
  const choice = (name: string) => screen.getByRole('radio', { name });
  await waitFor(() => expect(choice('1 day').getAttribute('aria-checked')).toBe('true'));
  expect(screen.getByRole('button', { name: /running/ })).toBeTruthy();
  expect(asked).toEqual([168]);
  await userEvent.click(choice('6 hours'));
  await waitFor(() => expect(asked).toEqual([168, 6]));
  expect(choice('6 hours').getAttribute('aria-checked')).toBe('true');
});
