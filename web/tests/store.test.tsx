import { act, cleanup, renderHook } from '@testing-library/react';
import { describe, expect, it, vi } from 'vitest';
import { recall, remember, useRemembered } from '../src/lib/store';
import { replaceJobFile, untouched, useJobFile } from '../src/pages/command/jobfile';
import { SAMPLES } from '../src/pages/command/samples';

describe('what the browser remembers', () => {
  it('is what was written here, whatever another page writes meanwhile', () => {
    localStorage.setItem('a', 'before');
    const here = renderHook(() => useRemembered<string>('a', 'nothing'));
    expect(here.result.current[0]).toBe('before');
    localStorage.setItem('a', 'there');
    here.rerender();
    expect(here.result.current[0]).toBe('before');
    act(() => here.result.current[1]('here'));
    localStorage.setItem('a', 'there again');
    here.rerender();
    expect(here.result.current[0]).toBe('here');
    cleanup();
    expect(renderHook(() => useRemembered<string>('a', 'nothing')).result.current[0]).toBe('here');
  });
  it('is the same wherever it is shown on a page', () => {
    const one = renderHook(() => useRemembered<string>('b', 'nothing'));
    const other = renderHook(() => useRemembered<string>('b', 'nothing'));
    act(() => one.result.current[1]('words'));
    expect(other.result.current[0]).toBe('words');
    expect(localStorage.getItem('b')).toBe('words');
  });
  it('holds though the browser refuses to remember', () => {
    const refuse = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
      throw new Error('refused');
    });
    remember('c', 'words');
    expect(recall('c', 'nothing')).toBe('words');
    refuse.mockRestore();
  });
});

describe('a job file that gives way to another', () => {
  const sweep = { text: 'version: 1\n', name: 'sweep.yaml', dialect: 'native', cwd: '/a' } as const;
  const mine = { text: '1\ntrue\n8\n', name: 'mine.txt', dialect: 'commands', cwd: '/b' } as const;

  it('is brought back if somebody had written it', () => {
    const { result } = renderHook(() => useJobFile());
    expect(result.current[0].text).toBe(SAMPLES.native.text);
    expect(replaceJobFile(sweep)).toBeNull();
    act(() => result.current[1](mine));
    let back: (() => void) | null = null;
    act(() => {
      back = replaceJobFile(sweep);
    });
    expect(result.current[0]).toEqual(sweep);
    act(() => back?.());
    expect(result.current[0]).toEqual(mine);
  });
  it('is nothing to bring back where it is empty, or a sample', () => {
    expect(untouched(' \n')).toBe(true);
    expect(untouched(SAMPLES.script.text)).toBe(true);
    expect(untouched(mine.text)).toBe(false);
  });
});
