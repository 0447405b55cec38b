import { fireEvent, render, screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import type { Results } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import type { PlotPoint } from '../src/pages/results/export';
import { Table } from '../src/pages/results/page';
import { Plot } from '../src/pages/results/plot';

/** So many lines over so many values of the parameter. */
const linesOf = (lines: number, values: number) =>
  new Map(
    Array.from({ length: lines }, (_, line): [string, PlotPoint[]] => [
      `net=${line}`,
      Array.from({ length: values }, (_, x) => ({ x: String(x), mean: line + x, std: 1 })),
    ]),
  );

const draw = (lines: number, values: number) =>
  render(
    <LanguageProvider>
      <Plot lines={linesOf(lines, values)} metric="acc" parameter="lr" />
    </LanguageProvider>,
  ).container;

describe('a plot', () => {
  const xsOf = (plot: Element, value: number) =>
    [...plot.querySelectorAll('circle')]
      .filter((dot) => dot.textContent.includes(` lr=${value}:`))
      .map((dot) => Number(dot.getAttribute('cx')));

  it.each([
    [3, 4],
    [20, 6],
    [100, 6],
  ])('keeps the points of %i lines at their values of %i', (lines, values) => {
    const plot = draw(lines, values);
    const places = Array.from({ length: values }, (_, value) => xsOf(plot, value));
    for (const [value, next] of places.slice(1).entries()) {
      expect(Math.max(...(places[value] ?? []))).toBeLessThan(Math.min(...next));
    }
  });

  it('gives every line that it draws a look of its own, and says of how many', () => {
    const plot = draw(40, 2);
    const looks = [...plot.querySelectorAll('polyline')].map(
      (line) =>
        `${line.parentElement?.getAttribute('style')} ${line.getAttribute('stroke-dasharray')}`,
    );
    expect(new Set(looks).size).toBe(looks.length);
    expect(screen.getByText(new RegExp(`The first ${looks.length} of 40 lines`))).toBeTruthy();
    expect(screen.getAllByRole('listitem')).toHaveLength(looks.length);
  });

  it('of thousands of points draws lines alone, with names that do not cover each other', () => {
    const plot = draw(1, 5_000);
    expect(plot.querySelectorAll('circle')).toHaveLength(0);
    expect(plot.querySelectorAll('polyline')).toHaveLength(1);
    expect(plot.querySelectorAll('text').length).toBeLessThan(30);
    expect(screen.getByText('Lines join the means.')).toBeTruthy();
  });
});

describe('the table of results', () => {
  const results = {
    by: ['seed'],
    groups: Array.from({ length: 500 }, (_, i) => ({
      params: { seed: String(i) },
      runs: 1,
      failed: 0,
      not_ended: 0,
      best: i === 400,
      jobs: [],
      metrics: { acc: { n: 1, mean: i, std: null } },
    })),
  } as unknown as Results;

  it('begins with some rows and the best, and shows more when somebody wants them', () => {
    const { container } = render(
      <LanguageProvider>
        <Table results={results} metrics={['acc']} />
      </LanguageProvider>,
    );
    const rows = () => container.querySelectorAll('tbody tr').length;
    const more = () => container.querySelector('button');
    expect(rows()).toBe(201);
    expect(container.querySelector('tr.best td')?.textContent).toBe('400');
    expect(more()?.parentElement?.textContent).toMatch(/^The first 200 of 500 rows/);
    fireEvent.click(more() as Element);
    expect(rows()).toBe(500);
    expect(more()).toBeNull();
  });
});
