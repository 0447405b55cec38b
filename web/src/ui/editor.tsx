// The text editor. Comes with its page, not with the first.

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { yaml } from '@codemirror/lang-yaml';
import {
  HighlightStyle,
  StreamLanguage,
  bracketMatching,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { shell } from '@codemirror/legacy-modes/mode/shell';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, type Extension, type Text } from '@codemirror/state';
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import type { Dialect, Problem } from '../api/types';
import { useLanguage, type Key, type Translate } from '../i18n';
import { complete } from './completion';
import { AT_START } from './vocabulary';

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--log-bg)', color: 'var(--ink)', fontSize: '13px', height: '100%' },
  '.cm-content': { fontFamily: 'var(--font-mono)', caretColor: 'var(--accent)', padding: '8px 0' },
  '.cm-scroller': { lineHeight: '1.55', fontFamily: 'var(--font-mono)' },
  '.cm-gutters': { backgroundColor: 'var(--log-bg)', color: 'var(--ink-3)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent) 6%, transparent)' },
  '.cm-activeLineGutter': { backgroundColor: 'transparent', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' }, // its frame has the ring: the gutter would cover a side of it
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft) !important',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--ink)',
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    boxShadow: 'var(--shadow)',
    maxWidth: '32rem',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  '.cm-diagnostic': { fontFamily: 'var(--font-sans)', padding: '6px 10px' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--failed)' },
  '.cm-diagnostic-warning': { borderLeft: '3px solid var(--paused)' },
  '.cm-panels': { backgroundColor: 'var(--surface-2)', color: 'var(--ink)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--running)' },
  { tag: [tags.comment], color: 'var(--ink-3)', fontStyle: 'italic' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--succeeded)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--killed)' },
  { tag: [tags.keyword, tags.standard(tags.name)], color: 'var(--accent)' },
  { tag: [tags.variableName, tags.attributeName], color: 'var(--foreign-ink)' },
  { tag: tags.meta, color: 'var(--paused)' },
]);

const FILLED = new RegExp(`\\{(?:${AT_START.join('|')})\\}`);

/** Blocks of commands between numbers; what is in braces is filled in. */
const commands = StreamLanguage.define({
  token(stream) {
    if (stream.sol()) {
      if (stream.match(/\s*#.*/)) return 'comment';
      if (stream.match(/\s*[\d.]+\s*(?:,\s*[\d.]+\s*)?(?=#|$)/)) return 'number';
    }
    if (stream.match(/#.*$/)) return /^[\d.,\s]+#/.test(stream.string.trim()) ? 'comment' : null;
    if (stream.match(FILLED)) return 'variableName';
    if (stream.match(/"[^"]*"|'[^']*'/)) return 'string';
    if (stream.match(/--?[A-Za-z][\w-]*/)) return 'keyword';
    stream.next();
    return null;
  },
});

export function languageOf(dialect: Dialect): Extension {
  switch (dialect) {
    case 'native':
    case 'fedwhat':
      return yaml();
    case 'gpu_manager':
      return json();
    case 'script':
      return StreamLanguage.define(shell);
    case 'commands':
      return commands;
  }
}

/** What the parts of the editor say by themselves. */
const PHRASES = {
  Completions: 'editor.completions',
  'Control character': 'editor.control',
  'Selection deleted': 'editor.deleted',
  Diagnostics: 'editor.problems',
  'No diagnostics': 'editor.noProblems',
  close: 'common.close',
  Find: 'editor.find',
  next: 'editor.next',
  previous: 'editor.previous',
  all: 'editor.all',
  'match case': 'editor.case',
  regexp: 'editor.pattern',
  'by word': 'editor.words',
  Replace: 'editor.replaceBy',
  replace: 'editor.replace',
  'replace all': 'editor.replaceAll',
  'replaced match on line $': 'editor.replaced',
  'replaced $ matches': 'editor.replacedAll',
  'current match': 'editor.match',
  'on line': 'editor.onLine',
  'Go to line': 'editor.line',
  go: 'editor.go',
} as const satisfies Record<string, Key>;

const phrases = (t: Translate): Extension =>
  EditorState.phrases.of(
    Object.fromEntries(Object.entries(PHRASES).map(([phrase, key]) => [phrase, t(key)])),
  );

/** Where a problem stands in the text; one without a line stands at the first. */
export function diagnosticOf(doc: Text, problem: Problem): Diagnostic {
  const line = doc.line(Math.min(doc.lines, Math.max(1, problem.line ?? 1)));
  const from = Math.min(line.to, line.from + Math.max(0, (problem.column ?? 1) - 1));
  return {
    from,
    to: Math.max(from, line.to),
    severity: problem.severity,
    message: problem.message,
  };
}

export default function Editor({
  label,
  value,
  dialect,
  problems,
  readOnly = false,
  onChange,
  onSubmit,
}: {
  label: string;
  value: string;
  dialect: Dialect;
  problems: readonly Problem[];
  readOnly?: boolean;
  onChange: (value: string) => void;
  onSubmit?: () => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const language = useRef(new Compartment());
  const words = useRef(new Compartment());
  const { t } = useLanguage();
  const latest = useRef({ onChange, onSubmit });
  useEffect(() => {
    latest.current = { onChange, onSubmit };
  });

  useEffect(() => {
    if (!place.current) return undefined;
    const mine = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(),
          highlightActiveLineGutter(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          lintGutter(),
          language.current.of([]),
          words.current.of([]),
          syntaxHighlighting(colours),
          look,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
          EditorState.readOnly.of(readOnly),
          keymap.of([
            {
              key: 'Mod-Enter',
              run: () => {
                latest.current.onSubmit?.();
                return true;
              },
            },
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...completionKeymap,
            ...lintKeymap,
            indentWithTab,
          ]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    mine.scrollDOM.tabIndex = 0; // what scrolls can be reached by keys
    view.current = mine;
    return () => {
      mine.destroy();
      view.current = null;
    };
    // The text is its own from here on; see the next effect for what comes from outside.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [label, readOnly]);

  useEffect(() => {
    const mine = view.current;
    if (mine && mine.state.doc.toString() !== value) {
      mine.dispatch({ changes: { from: 0, to: mine.state.doc.length, insert: value } });
    }
  }, [value]);
  useEffect(() => {
    view.current?.dispatch({
      effects: language.current.reconfigure([
        languageOf(dialect),
        autocompletion({
          override: [complete(dialect)],
          icons: false, // their font is not among those that come along
          // Behind the mark of a directive come its options.
          activateOnCompletion: ({ type }) => type === 'keyword',
        }),
      ]),
    });
  }, [dialect, label, readOnly]);
  useEffect(() => {
    view.current?.dispatch({ effects: words.current.reconfigure(phrases(t)) });
  }, [t, label, readOnly]);
  useEffect(() => {
    const mine = view.current;
    if (!mine) return;
    const doc = mine.state.doc;
    mine.dispatch(
      setDiagnostics(
        mine.state,
        problems.map((problem) => diagnosticOf(doc, problem)),
      ),
    );
  }, [problems]);

  return <div ref={place} className="editor" />;
}
