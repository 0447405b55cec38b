import { QueryClientProvider } from '@tanstack/react-query';
import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { queryClient } from '../src/api/data';
import { LanguageProvider } from '../src/i18n';
import { CheckedJobs } from '../src/pages/command/checked';
import { useSubmit } from '../src/pages/command/usesubmit';
import { OverlayProvider } from '../src/ui/overlay';

/** Each line is a job; one that says so is a mistake. */
function answer(text: string) {
  const lines = text.split('\n');
  const wrong = lines.indexOf('wrong') + 1;
  const problems = wrong
    ? [{ severity: 'error', file: null, line: wrong, column: 1, message: 'no such word' }]
    : [];
  return { dialect: 'native', jobs: [], total: lines.length, problems };
}

let submitted: string[] = [];
let held: Promise<void> = Promise.resolve();
/** Holds the answers to checks back, until what it gives is called. */
function hold(): () => void {
  let release = () => undefined as void;
  held = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

beforeEach(() => {
  queryClient.clear();
  queryClient.setQueryData(['session'], { via: 'token', scope: 'full', user: 'u', csrf: null });
  submitted = [];
  held = Promise.resolve();
  vi.stubGlobal('fetch', async (request: Request) => {
    const { text } = (await request.json()) as { text: string };
    if (request.url.endsWith('/api/check')) {
      await held;
      return Response.json(answer(text));
    }
    submitted.push(text);
    return Response.json({ batch: null, ids: [1, 1], skipped: [] });
  });
});

function Form({ cwd = '/work' }: { cwd?: string }) {
  const [text, setText] = useState('one');
  const { check, submit, disabled, label } = useSubmit({
    text,
    name: 'jobs.yaml',
    dialect: 'native',
    cwd,
  });
  return (
    <>
      <textarea
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.ctrlKey && event.key === 'Enter' && submit()}
      />
      <button disabled={disabled} onClick={submit}>
        {label}
      </button>
      <CheckedJobs check={check} />
    </>
  );
}

async function write(text: string) {
  const field = screen.getByRole('textbox');
  await userEvent.clear(field);
  if (text) await userEvent.type(field, text);
}
const button = (name: string) => screen.findByRole<HTMLButtonElement>('button', { name });
const show = (form = <Form />) =>
  render(
    <QueryClientProvider client={queryClient}>
      <LanguageProvider>
        <OverlayProvider>{form}</OverlayProvider>
      </LanguageProvider>
    </QueryClientProvider>,
  );

describe('a text that is submitted', () => {
  it('is one that was checked', async () => {
    show();
    expect((await button('Submit 1 job')).disabled).toBe(false);
    const release = hold();
    await write('one\ntwo');
    expect((await button('Submit')).disabled).toBe(true);
    release();
    await userEvent.click(await button('Submit 2 jobs'));
    await waitFor(() => expect(submitted).toEqual(['one\ntwo']));
  });
  it('waits for its check where somebody was quicker', async () => {
    show();
    await button('Submit 1 job');
    const release = hold();
    await write('one\ntwo\nthree');
    await userEvent.keyboard('{Control>}{Enter}{/Control}');
    expect(submitted).toEqual([]);
    release();
    await waitFor(() => expect(submitted).toEqual(['one\ntwo\nthree']));
  });
  it('is not submitted with mistakes, and that is said', async () => {
    show();
    await write('one\nwrong');
    await userEvent.keyboard('{Control>}{Enter}{/Control}');
    expect(await screen.findByText(/Nothing was submitted/)).toBeTruthy();
    expect(screen.getByText('Line 2:')).toBeTruthy();
    expect(submitted).toEqual([]);
  });
  it('makes nothing once it is empty', async () => {
    show();
    await screen.findByText(/read as berth job file/);
    await write('');
    expect((await button('Submit')).disabled).toBe(true);
    expect(screen.queryByText(/read as berth job file/)).toBeNull();
    expect(screen.getByText(/Write something/)).toBeTruthy();
  });
  it('needs a directory', async () => {
    show(<Form cwd="work" />);
    expect(await screen.findByText(/in which directory/)).toBeTruthy();
  });
  it('is not asked about by those who may only look, and they are told', () => {
    queryClient.setQueryData(['session'], { via: 'token', scope: 'read', user: 'u', csrf: null });
    show();
    expect(screen.getByText(/This login may only look/)).toBeTruthy();
  });
});
