import { readFileSync } from 'node:fs';
import path from 'node:path';
import { runInThisContext } from 'node:vm';
import { render } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { useTheme } from '../src/lib/theme';

const file = (name: string) => readFileSync(path.resolve(import.meta.dirname, '..', name), 'utf8');
const root = document.documentElement;

function Page() {
  useTheme();
  return null;
}

describe('the theme', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each([
    ['dark', false, 'dark'],
    ['light', true, 'light'],
    ['system', true, 'dark'],
    ['system', false, 'light'],
    [null, true, 'dark'],
  ])('%s, where the system is dark: %s, is %s before the page is there and after', (...row) => {
    const [chosen, matches, shown] = row;
    if (chosen) localStorage.setItem('berth.theme', chosen);
    vi.stubGlobal('matchMedia', () => ({
      matches,
      addEventListener: () => undefined,
      removeEventListener: () => undefined,
    }));
    delete root.dataset['theme'];
    runInThisContext(file('public/theme.js'));
    expect(root.dataset['theme']).toBe(shown);
    delete root.dataset['theme'];
    render(<Page />);
    expect(root.dataset['theme']).toBe(shown);
  });

  it('is there before anything is drawn', () => {
    const head = /<head>[^]*<\/head>/.exec(file('index.html'))?.[0];
    expect(head).toContain('<script src="/theme.js"></script>');
  });
});
