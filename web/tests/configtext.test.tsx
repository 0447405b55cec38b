import { QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { useConfigText } from '../src/pages/command/usetext';

/** The file; its version is its text. */
let file = '';
let written = Promise.resolve();

beforeEach(() => {
  queryClient.clear();
  file = 'one';
  written = Promise.resolve();
  vi.stubGlobal('fetch', async (request: Request) => {
    if (request.method === 'PUT') {
      const { text, version } = (await request.json()) as { text: string; version: string };
      if (version !== file)
        return Response.json({ error: { code: 'conflict', message: 'no' } }, { status: 409 });
      file = text;
      await written;
    }
    return Response.json({ text: file, version: file, queues: [], problems: [] });
  });
});

const wrapper = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
);

let index = 0;
async function begin() {
  index += 1; // another file for each test: what is written outlives the page
  const { result } = renderHook(() => useConfigText('single', index), { wrapper });
  await waitFor(() => expect(result.current.text).toBe('one'));
  return result;
}
async function look(text: { current: ReturnType<typeof useConfigText> }) {
  await act(() => queryClient.refetchQueries());
  await waitFor(() => expect(text.current.file?.text).toBe(file));
}

describe('the text of a command file', () => {
  it('is what is in the file, until somebody writes', async () => {
    const text = await begin();
    file = 'two';
    await look(text);
    expect(text.current).toMatchObject({ text: 'two', changed: false, conflict: false });
    act(() => text.current.write('two and more'));
    expect(text.current).toMatchObject({ text: 'two and more', changed: true, conflict: false });
    await act(text.current.save);
    expect(file).toBe('two and more');
    expect(text.current).toMatchObject({ text: 'two and more', changed: false, conflict: false });
  });
  it('keeps what is typed while it is saved, and that can be saved then', async () => {
    const text = await begin();
    let answer = () => undefined as void;
    written = new Promise((resolve) => {
      answer = resolve;
    });
    act(() => text.current.write('two'));
    let saved = Promise.resolve();
    act(() => {
      saved = text.current.save();
    });
    await waitFor(() => expect(file).toBe('two'));
    act(() => text.current.write('two, three'));
    await look(text);
    expect(text.current).toMatchObject({ text: 'two, three', conflict: false });
    answer();
    await act(() => saved);
    expect(file).toBe('two');
    expect(text.current).toMatchObject({ text: 'two, three', changed: true, conflict: false });
    await act(text.current.save);
    expect(file).toBe('two, three');
    expect(text.current.changed).toBe(false);
  });
  it('is in conflict with what somebody else saves, and can replace it', async () => {
    const text = await begin();
    act(() => text.current.write('mine'));
    file = 'theirs';
    await expect(act(text.current.save)).rejects.toThrow('no');
    await look(text);
    expect(text.current).toMatchObject({ text: 'mine', conflict: true, file: { text: 'theirs' } });
    await act(text.current.overwrite);
    expect(file).toBe('mine');
    expect(text.current).toMatchObject({ text: 'mine', changed: false, conflict: false });
  });
  it('gives way to what somebody else saves, and can be brought back', async () => {
    const text = await begin();
    act(() => text.current.write('mine'));
    file = 'theirs';
    await look(text);
    let back = () => undefined as void;
    act(() => {
      back = text.current.discard();
    });
    expect(text.current).toMatchObject({ text: 'theirs', changed: false, conflict: false });
    act(back);
    expect(text.current).toMatchObject({ text: 'mine', conflict: true });
  });
  it('is in no conflict with the same text', async () => {
    const text = await begin();
    act(() => text.current.write('same'));
    file = 'same';
    await look(text);
    expect(text.current).toMatchObject({ changed: false, conflict: false });
    act(() => text.current.write('same and more'));
    expect(text.current.conflict).toBe(false);
    await act(text.current.save);
    expect(file).toBe('same and more');
  });
});
