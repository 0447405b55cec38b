import { act, cleanup, renderHook } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { askBeforeLeaving, useDraft } from '../src/lib/draft';

const leaves = () => globalThis.dispatchEvent(new Event('beforeunload', { cancelable: true }));

describe('what is written and not saved', () => {
  it('is there when one comes back, and is asked about before one leaves', () => {
    askBeforeLeaving();
    expect(leaves()).toBe(true);
    const first = renderHook(() => useDraft<string | null>('single 0', null));
    act(() => first.result.current[1](() => 'words'));
    cleanup();
    const again = renderHook(() => useDraft<string | null>('single 0', null));
    expect(again.result.current[0]).toBe('words');
    const other = renderHook(() => useDraft<string | null>('single 1', null));
    expect(other.result.current[0]).toBeNull();
    expect(leaves()).toBe(false);
    act(() => again.result.current[1](() => null));
    expect(leaves()).toBe(true);
  });
});
