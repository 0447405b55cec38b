import {
  acceptCompletion,
  completionStatus,
  currentCompletions,
  insertBracket,
  startCompletion,
} from '@codemirror/autocomplete';
import { openLintPanel } from '@codemirror/lint';
import { gotoLine, openSearchPanel } from '@codemirror/search';
import { EditorSelection } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { act, render, waitFor } from '@testing-library/react';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import schema from '../../docs/formats/jobfile.schema.json';
import type { Dialect } from '../src/api/types';
import { LanguageProvider } from '../src/i18n';
import { EXAMPLES } from '../src/pages/command/samples';
import Editor from '../src/ui/editor';
import {
  AT_START,
  COMMAND_CONFIG,
  DIRECTIVES,
  FEDWHAT,
  FEDWHAT_WORDS,
  GPU_MANAGER,
} from '../src/ui/vocabulary';

/** In all these texts: where the cursor is. */
const CURSOR = '‸';

/** An editor of a text, with the cursor in its place. */
function edit(dialect: Dialect, text: string): EditorView {
  const { container } = render(
    <LanguageProvider>
      <Editor label="text" value="" dialect={dialect} problems={[]} onChange={() => undefined} />
    </LanguageProvider>,
  );
  const view = EditorView.findFromDOM(container);
  if (!view) throw new Error('there is no editor');
  const at = text.indexOf(CURSOR);
  act(() =>
    view.dispatch({
      changes: { from: 0, insert: text.replace(CURSOR, '') },
      selection: EditorSelection.cursor(at),
    }),
  );
  return view;
}

const open = (view: EditorView) =>
  waitFor(() => expect(completionStatus(view.state)).toBe('active'));

async function offered(view: EditorView): Promise<string[]> {
  startCompletion(view);
  await open(view);
  return currentCompletions(view.state).map(({ label }) => label);
}

/** Takes what is offered first; before it has been there for a moment a key does not mean it. */
async function take(view: EditorView): Promise<string> {
  await open(view);
  await waitFor(() => expect(acceptCompletion(view)).toBe(true));
  const { head } = view.state.selection.main;
  return `${view.state.sliceDoc(0, head)}${CURSOR}${view.state.sliceDoc(head)}`;
}

/** As somebody types it. */
function type(view: EditorView, text: string): void {
  for (const letter of text) {
    const closed = insertBracket(view.state, letter);
    const { head } = view.state.selection.main;
    view.dispatch(
      closed ?? {
        changes: { from: head, insert: letter },
        selection: EditorSelection.cursor(head + 1),
        userEvent: 'input.type',
      },
    );
  }
}

const SINGLE = EXAMPLES.single;
const MULTI = EXAMPLES.multi;
const JOBS = 'version: 1\njobs:\n  - name: a\n';

describe('a completion', () => {
  it.each<[string, Dialect, string, string, string]>([
    ['a key of a job', 'native', `${JOBS}    ‸`, 'gpu_m', `${JOBS}    gpu_memory: ‸`],
    ['a key of the file', 'native', '‸', 'res', 'resume: ‸'],
    ['a value', 'native', `${JOBS}    strategy: ‸`, 'round', `${JOBS}    strategy: round_robin‸`],
    ['a key in braces', 'native', 'rules: ‸', '{strat', 'rules: {strategy: ‸}'],
    ['a placeholder', 'native', `${JOBS}    run: a ‸`, '{po', `${JOBS}    run: a {port}‸`],
    ['a key of a job', 'fedwhat', 'jobs:\n  ‸', '- alg', 'jobs:\n  - algorithm: ‸'],
    ['a value', 'fedwhat', 'seed_in: ‸', 'conf', 'seed_in: config‸'],
    ['a placeholder', 'fedwhat', 'command: go ‸', '{alg', 'command: go {algorithm}‸'],
    ['a placeholder', 'commands', `1\ncd ‸\n8\n`, '{wo', `1\ncd {work_dir}‸\n8\n`],
    ['a placeholder', 'commands', `cd ‸\n1,8\n`, '{un', `cd {uni_id}‸\n1,8\n`],
    ['a placeholder', 'commands', `${SINGLE}\n1\nls ‸`, '{wo', `${SINGLE}\n1\nls {work_dir}‸`],
    ['a placeholder', 'commands', `${MULTI}\n1\nls ‸`, '{gpu_l', `${MULTI}\n1\nls {gpu_list}‸`],
    ['a key of a configuration', 'commands', '‸', 'gpus_c', 'gpus_command_file: ‸'],
    [
      'a key further in',
      'commands',
      'check_time: 5\nretry_config:\n  ‸',
      'ba',
      'check_time: 5\nretry_config:\n  backoff_duration: ‸',
    ],
    ['a key', 'gpu_manager', '‸', '{"mon', '{"monitor_interval": ‸}'],
    ['a key without a quote', 'gpu_manager', '‸', '{mon', '{"monitor_interval": ‸}'],
    [
      'a key further in',
      'gpu_manager',
      '{ // how it grows: {\n  "auto_scale": true,\n  "scaling": ‸\n}',
      '{"min',
      '{ // how it grows: {\n  "auto_scale": true,\n  "scaling": {"min_gpus": ‸}\n}',
    ],
    ['a value', 'gpu_manager', '{"auto_scale": ‸}', 'fa', '{"auto_scale": false‸}'],
    [
      'a placeholder',
      'gpu_manager',
      '{"program_template": {"args": ["‸"]}}',
      '{gpu_l',
      '{"program_template": {"args": ["{gpu_list}‸"]}}',
    ],
    ['a mark', 'script', '#!/bin/bash\n‸', '#be', '#!/bin/bash\n#BERTH ‸'],
    ['an option', 'script', '#BERTH ‸', '--gpu-', '#BERTH --gpu-memory=‸'],
    ['another option', 'script', '#SBATCH --gpus=1 ‸', '--ti', '#SBATCH --gpus=1 --time=‸'],
    ['an option without a value', 'script', '#BERTH ‸', '--lin', '#BERTH --linger‸'],
  ])('of %s of %s takes its place and nothing else', async (_, dialect, text, typed, result) => {
    const view = edit(dialect, text);
    type(view, typed);
    expect(await take(view)).toBe(result);
  });

  it('replaces what stood there before', async () => {
    const view = edit('gpu_manager', '{"moni‸tor": 5}');
    startCompletion(view);
    expect(await take(view)).toBe('{"monitor_interval": ‸5}');
  });

  it('of a mark goes on with its options', async () => {
    const view = edit('script', '‸');
    type(view, '#SB');
    await take(view);
    await waitFor(() =>
      expect(currentCompletions(view.state).map(({ label }) => label)).toContain('--gres='),
    );
  });

  it.each<[string, Dialect, string]>([
    ['the lines of a command', 'native', `${JOBS}    run: |\n      ‸`],
    ['a comment', 'native', '# ‸'],
    ['a comment', 'commands', '# ‸'],
    ['a command', 'commands', `${SINGLE}\n3\n‸`],
    ['a comment behind a command', 'script', 'python train.py\n‸#'],
    ['a comment', 'gpu_manager', '{ // ‸\n}'],
  ])('is not in the way in %s of %s', async (_, dialect, text) => {
    const view = edit(dialect, text);
    type(view, 'gpu');
    await new Promise((done) => setTimeout(done, 300));
    expect(completionStatus(view.state)).toBeNull();
  });
});

/** The words of a list in the source of the daemon; of options, whether they take a value, too. */
function theirs(file: string, list: string): string[] {
  const source = readFileSync(path.resolve(import.meta.dirname, '../../src', file), 'utf8');
  const begin = `\\b${list}\\s*(?:=\\s*(?:std::to_array<[^>]*>\\(\\s*)?)?\\{`;
  const [, table] = new RegExp(`${begin}([^;]*);`).exec(source) ?? [];
  if (table === undefined) throw new Error(`${file} has no ${list}`);
  return [...table.matchAll(/"([\w-]+)"([^"}]*)/g)].map(([, word = '', rest = '']) =>
    word.startsWith('--') && !rest.includes('nothing') ? `${word}=` : word,
  );
}

describe('what is offered', () => {
  const job = schema.$defs.job.properties;
  const braced = (words: readonly string[]) => words.map((word) => `{${word}}`);
  const all = (words: readonly string[]) => [...words].sort();

  it('is what the parsers of the daemon know', () => {
    const of = (vocabulary: typeof FEDWHAT, at: string) => all(Object.keys(vocabulary[at] ?? {}));
    const same = (mine: readonly string[], file: string, list: string) =>
      expect(all(mine), list).toEqual(all(theirs(file, list)));
    same(AT_START, 'core/placeholders.hpp', 'kLaunchPlaceholders');
    same(of(FEDWHAT, ''), 'dialects/fedwhat.cpp', 'kTopKeys');
    same(of(FEDWHAT, 'jobs'), 'dialects/fedwhat.cpp', 'kJobKeys');
    same(FEDWHAT_WORDS, 'dialects/fedwhat.cpp', 'kJobWords');
    same(of(COMMAND_CONFIG, ''), 'dialects/command_config.cpp', 'kKeys');
    same(of(COMMAND_CONFIG, 'retry_config'), 'dialects/command_config.cpp', 'kRetryKeys');
    same(of(GPU_MANAGER, ''), 'dialects/gpu_manager_keys.cpp', 'kTopKeys');
    same(of(GPU_MANAGER, 'program_template'), 'dialects/gpu_manager_keys.cpp', 'kProgramKeys');
    same(of(GPU_MANAGER, 'scaling'), 'dialects/gpu_manager_keys.cpp', 'kScalingKeys');
    same(of(GPU_MANAGER, 'notification'), 'dialects/gpu_manager_keys.cpp', 'kNotificationKeys');
    same(DIRECTIVES['#BERTH'] ?? [], 'dialects/berth_options.cpp', 'kKnown');
    // One of them is read to say that it means nothing.
    same([...(DIRECTIVES['#SBATCH'] ?? []), '--no-requeue'], 'dialects/slurm_options.cpp', 'kRead');
  });

  it.each<[string, Dialect, string, readonly string[]]>([
    ['keys of the file', 'native', '‸', Object.keys(schema.properties)],
    ['keys of a job', 'native', `${JOBS}    ‸`, Object.keys(job)],
    ['keys of a job further out', 'native', 'jobs:\n- name: a\n  ‸', Object.keys(job)],
    ['keys of a part', 'native', `${JOBS}    signal:\n      ‸`, ['name', 'before']],
    ['keys of what has a name of its own', 'native', 'queues:\n  car:\n    limi‸', ['limit']],
    ['placeholders', 'native', `${JOBS}    run: |\n      ‸`, braced(AT_START)],
    ['keys of the file', 'fedwhat', '‸', Object.keys(FEDWHAT[''] ?? {})],
    ['keys of a job', 'fedwhat', 'jobs:\n  - name: a\n    ‸', Object.keys(FEDWHAT['jobs'] ?? {})],
    ['placeholders', 'fedwhat', 'command: go {‸}', braced([...FEDWHAT_WORDS, ...AT_START])],
    ['placeholders', 'commands', `${SINGLE}1\n{‸}\n`, braced(AT_START)],
    ['keys of the file', 'gpu_manager', '{‸}', Object.keys(GPU_MANAGER[''] ?? {})],
    ['keys of a part', 'gpu_manager', '{"program_template": {‸}}', ['command', 'args', 'env_vars']],
    ['options', 'script', '#BERTH ‸', DIRECTIVES['#BERTH'] ?? []],
    ['options', 'script', '#SBATCH ‸', DIRECTIVES['#SBATCH'] ?? []],
  ])('as %s of %s is what may stand there', async (_, dialect, text, words) => {
    expect(all(await offered(edit(dialect, text)))).toEqual(all(words));
  });
});

describe('in Chinese', () => {
  it.each([
    ['the search', openSearchPanel],
    ['the list of problems', openLintPanel],
    ['the way to a line', gotoLine],
  ])('%s is, too', (_, command) => {
    localStorage.setItem('berth.language', 'zh');
    const view = edit('commands', '‸');
    act(() => void command(view));
    const panel = view.dom.querySelector('.cm-panels');
    const said = [...(panel?.querySelectorAll('*') ?? [])].flatMap((part) => [
      ...['placeholder', 'aria-label'].map((name) => part.getAttribute(name) ?? ''),
      part.children.length ? '' : part.textContent,
    ]);
    expect(said.join('')).toMatch(/[一-鿿]/);
    expect(said.join('')).not.toMatch(/[a-z]/i);
  });
});
