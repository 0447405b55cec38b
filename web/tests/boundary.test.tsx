import { render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LanguageProvider } from '../src/i18n';
import { Boundary } from '../src/shell/boundary';

function Page({ place }: { place: string }) {
  if (place === '/state/7') throw new Error('a job like no other');
  return <p>at {place}</p>;
}
const at = (place: string) => (
  <LanguageProvider>
    <Boundary place={place} link="live">
      <Page place={place} />
    </Boundary>
  </LanguageProvider>
);

beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => undefined));
afterEach(() => vi.restoreAllMocks());

describe('a page that is broken', () => {
  it('leaves those alone that one goes on to, of the same part of the console, too', () => {
    const { rerender } = render(at('/state/7'));
    expect(screen.getByText('a job like no other')).toBeTruthy();
    rerender(at('/state'));
    expect(screen.getByText('at /state')).toBeTruthy();
  });
});
