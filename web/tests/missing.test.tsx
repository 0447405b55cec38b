import { render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { live } from '../src/api/data';
import { LanguageProvider } from '../src/i18n';
import { Missing } from '../src/ui/missing';

afterEach(() => {
  live.stop();
  vi.unstubAllGlobals();
});

it('what could not be had is told with its reason, or comes when the daemon is back', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('refused')));
  render(
    <LanguageProvider>
      <Missing error={new Error('the disk is gone')} />
    </LanguageProvider>,
  );
  expect(screen.getByText('the disk is gone')).toBeTruthy();
  live.start();
  expect(await screen.findByText('Shown when the daemon answers again.')).toBeTruthy();
  expect(screen.queryByText('the disk is gone')).toBeNull();
});
