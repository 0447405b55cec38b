import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { queryClient } from '../src/api/data';
import type { Preview, Rule } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import { changeOf, undoOf, unsent } from '../src/pages/rule/change';
import { grouped } from '../src/pages/rule/groups';
import { parseNews } from '../src/pages/rule/history';
import { Outcome } from '../src/pages/rule/preview';

const rule = (key: string, source = 'default', value = '1'): Rule => ({
  key,
  value,
  default: '0',
  source,
  type: 'N',
  help: 'in English',
});

describe('a change of rules', () => {
  it('is sent as what is set and what is taken back', () => {
    expect(changeOf({ a: '1', b: null }, 'queue:car', true)).toEqual({
      set: [{ key: 'a', value: '1' }],
      unset: ['b'],
      queue: 'car',
    });
    expect(changeOf({ a: '1' }, 'instance', true)).toEqual({
      set: [{ key: 'a', value: '1' }],
      save: true,
    });
  });

  it('leaves what is edited while it is on its way', () => {
    const sent = { a: '1', b: null };
    expect(unsent(sent, sent)).toEqual({});
    expect(unsent({ a: '12', b: null, c: null }, sent)).toEqual({ a: '12', c: null });
  });

  const before = [
    rule('aging'),
    rule('gpu_left', 'berth.yaml'),
    rule('max_gpu', 'this run'),
    rule('queue.car.limit', 'berth.yaml'),
    rule('queue.bus.limit', 'default', '0'),
    rule('resources.licence', 'berth.yaml', '2'),
    rule('resources.disk', 'this run', '3'),
  ];
  const all = Object.fromEntries(before.map(({ key }) => [key, '7']));
  const kept = [
    { key: 'max_gpu', value: '1' },
    { key: 'queue.car.limit', value: '1' },
    { key: 'queue.bus.limit', value: '0' },
    { key: 'resources.licence', value: '2' },
    { key: 'resources.disk', value: '3' },
  ];

  it('for this run is undone so that berth.yaml is followed again', () => {
    expect(undoOf(all, before, 'instance', false)).toEqual({
      set: kept,
      unset: ['aging', 'gpu_left'],
    });
  });
  it('in berth.yaml is undone there', () => {
    expect(undoOf(all, before, 'instance', true)).toEqual({
      set: [{ key: 'gpu_left', value: '1' }, ...kept],
      unset: ['aging'],
      save: true,
    });
  });
  it('of a queue is undone there, and leaves what nobody touched alone', () => {
    const rules = [rule('max_gpu', 'queue car'), rule('gpu_left', 'berth.yaml'), rule('aging')];
    expect(undoOf({ max_gpu: null, gpu_left: '2' }, rules, 'queue:car', false)).toEqual({
      set: [{ key: 'max_gpu', value: '1' }],
      unset: ['gpu_left'],
      queue: 'car',
    });
  });
});

describe('the search for rules', () => {
  it('finds the words that are shown, in Chinese too', () => {
    const found = (wanted: string) =>
      grouped([rule('strategy'), rule('gpu_left')], wanted).flatMap(([, rules]) =>
        rules.map(({ key }) => key),
      );
    expect(found('留给他人')).toEqual(['gpu_left']);
    expect(found('English')).toHaveLength(2);
    expect(found('')).toHaveLength(2);
  });
});

describe('what a change of rules would do', () => {
  const show = (told: Partial<Preview>) =>
    render(
      <QueryClientProvider client={queryClient}>
        <LanguageProvider>
          <Outcome told={{ starts: [], waits: [], more: false, problems: [], ...told }} />
        </LanguageProvider>
      </QueryClientProvider>,
    );
  const wait = (id: number, jobs: number) => ({ id, jobs, before: 'one', after: 'another' });

  it('counts all that wait alike, also those that are not shown', () => {
    show({ waits: [wait(1, 1000), ...Array.from({ length: 13 }, (_, i) => wait(i + 2, 2))] });
    expect(screen.getByRole('heading').textContent).toBe('1,026 would wait for another reason');
    expect(screen.getByText('and 999 like it')).toBeTruthy();
    expect(screen.getAllByRole('listitem')).toHaveLength(12);
    expect(screen.getByText('and 4 more')).toBeTruthy();
  });
  it('says that there may be more than was told', () => {
    show({ waits: [wait(1, 1)], more: true });
    expect(screen.getByRole('heading').textContent).toBe('1 or more would wait for another reason');
    expect(screen.queryByText(/like it/)).toBeNull();
    expect(screen.getByText('Further jobs were not looked at.')).toBeTruthy();
  });
  const cards = { kind: 'gpu' as const, numbers: {}, names: {}, jobs: [] };
  const reason = { ...cards, numbers: { asked: 1, fitting: 0, possible: 2, total: 2 } };
  const alike = { ...wait(1, 1), why_before: reason, why_after: reason };
  it('is told card by card where the reason stays the same', () => {
    const card = (gpu: number, kind: 'claimed' | 'drained') => ({
      gpu,
      kind,
      text: 'as it says',
      jobs: [3],
      ...(kind === 'drained' ? { detail: 'fan' } : {}),
    });
    show({
      waits: [
        {
          ...alike,
          gpus_before: [card(0, 'claimed'), card(1, 'claimed')],
          gpus_after: [card(0, 'drained'), card(1, 'drained')],
        },
      ],
    });
    const { textContent } = screen.getByRole('listitem');
    expect(textContent).toContain('GPU 0-1: taken by job 3');
    expect(textContent).toContain('GPU 0-1: out of use: fan');
    expect(textContent).not.toContain('no GPU has room');
  });
  it('is nothing where nobody could see a difference', () => {
    show({ waits: [alike] });
    expect(screen.queryByRole('listitem')).toBeNull();
    expect(screen.getByText(/^Nothing/)).toBeTruthy();
  });
});

describe('what is told of a change of rules', () => {
  it('is where, who, and what held before', () => {
    expect(
      parseNews(
        'rules for this run, by token laptop: gpus=0,2 (was all), aging=0ms (was 1h, unset)',
      ),
    ).toEqual({
      where: 'for this run',
      who: 'token laptop',
      values: [
        { key: 'gpus', before: 'all', after: '0,2', unset: false },
        { key: 'aging', before: '1h', after: '0ms', unset: true },
      ],
    });
    expect(parseNews("rules of queue 'a: b, by c': gpu_left=1 (was 0)")?.where).toContain('a: b');
    expect(
      parseNews('rules for berth.yaml: queue.a b.limit=1 (was 0), gpu_left=1')?.values,
    ).toEqual([
      { key: 'queue.a b.limit', before: '0', after: '1', unset: false },
      { key: 'gpu_left', before: null, after: '1', unset: false },
    ]);
    expect(parseNews('rules: gpu_left=1')).toBeNull();
  });
});
