// What the editor offers while somebody writes, in each format.

import {
  insertCompletionText,
  pickedCompletion,
  type Completion,
  type CompletionSource,
} from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import schema from '../../../docs/formats/jobfile.schema.json';
import type { Dialect } from '../api/types';
import { jsonPlace, yamlPlace, type Place } from './textplace';
import {
  AT_START,
  COMMAND_CONFIG,
  DIRECTIVES,
  FEDWHAT,
  FEDWHAT_WORDS,
  GPU_MANAGER,
  type Vocabulary,
} from './vocabulary';

/** What may stand at a place. */
interface Word {
  label: string;
  info?: string;
}
type WordsAt = (place: Pick<Place, 'path' | 'of'>) => readonly Word[];

interface Schema {
  $ref?: string;
  description?: string;
  type?: string | string[];
  enum?: (string | number)[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
}
const { $defs: DEFS } = schema as unknown as { $defs: Record<string, Schema> };

/** All that a part of the schema may be, and each item of what is a list. */
function readings(part: Schema): Schema[] {
  const others = [
    DEFS[part.$ref?.replace('#/$defs/', '') ?? ''],
    part.items,
    ...(part.anyOf ?? []),
  ];
  return [part, ...others.flatMap((other) => (other ? readings(other) : []))];
}

function below(parts: Schema[], key: string): Schema[] {
  return parts.flatMap(({ properties = {}, additionalProperties: rest }) => {
    if (Object.hasOwn(properties, key)) return readings(properties[key] ?? {});
    return typeof rest === 'object' ? readings(rest) : [];
  });
}

const native: WordsAt = ({ path, of }) => {
  const parts = path.reduce(below, readings(schema as unknown as Schema));
  if (of !== null) {
    return below(parts, of).flatMap((part) =>
      part.type === 'boolean'
        ? [{ label: 'true' }, { label: 'false' }]
        : (part.enum ?? []).flatMap((label) => (typeof label === 'string' ? { label } : [])),
    );
  }
  return parts.flatMap(({ properties = {} }) =>
    Object.entries(properties).map(([label, { description: info }]) => ({ label, info })),
  );
};

const wordsOf =
  (vocabulary: Vocabulary): WordsAt =>
  ({ path, of }) => {
    const at = path.join('.');
    const keys = Object.hasOwn(vocabulary, at) ? (vocabulary[at] ?? {}) : {};
    const values = of !== null && Object.hasOwn(keys, of) ? (keys[of] ?? []) : [];
    return (of === null ? Object.keys(keys) : values).map((label) => ({ label }));
  };

/** In the place of what is written of it, and of what follows that: its end, and what was closed when it was opened. */
const put =
  (text: string, end: RegExp) =>
  (view: EditorView, completion: Completion, from: number, to: number): void => {
    const rest = view.state.sliceDoc(to, view.state.doc.lineAt(to).to);
    const over = end.exec(rest)?.[0].length ?? 0;
    view.dispatch({
      ...insertCompletionText(view.state, text, from, to + over),
      annotations: pickedCompletion.of(completion),
    });
  };

/** {word}, but neither ${word} nor {{word}}. */
function placeholders(words: readonly string[]): CompletionSource {
  const options = words.map((word) => ({
    label: `{${word}}`,
    type: 'variable',
    apply: put(`{${word}}`, /^\w*\}/),
  }));
  return (context) => {
    const begun = context.matchBefore(/(?<![${])\{\w*/);
    if (!begun && !context.explicit) return null;
    return { from: begun?.from ?? context.pos, options, validFor: /^\{\w*$/ };
  };
}

function inYaml(words: WordsAt, fill: readonly string[]): CompletionSource {
  const filled = placeholders(fill);
  return (context) => {
    const place = yamlPlace(context.state.sliceDoc(0, context.pos));
    if (!place) return filled(context);
    if (!place.word && !context.explicit) return null;
    return {
      from: context.pos - place.word.length,
      options: words(place).map((word) =>
        place.of === null
          ? { ...word, type: 'property', apply: put(`${word.label}: `, /^[\w.]*: ?/) }
          : { ...word, type: 'constant' },
      ),
      validFor: /^[\w.]*$/,
    };
  };
}

function inJson(words: WordsAt, fill: readonly string[]): CompletionSource {
  const filled = placeholders(fill);
  return (context) => {
    const before = context.state.sliceDoc(0, context.pos);
    const place = jsonPlace(before);
    const isKey = place?.of === null;
    if (!place || (place.quoted && !isKey)) return filled(context);
    if (!place.word && !place.quoted && !before.endsWith('{') && !context.explicit) return null;
    const open = place.quoted ? '' : '"';
    return {
      from: context.pos - place.word.length,
      options: words(place).map((word) =>
        isKey
          ? {
              ...word,
              type: 'property',
              apply: put(`${open}${word.label}": `, /^(?:\w*")?(?:\s*: ?)?/),
            }
          : { ...word, type: 'constant' },
      ),
      validFor: /^\w*$/,
    };
  };
}

const COMMENTS = /^(?:[ \t]*(?:#.*)?\n)*$/;

/** Where the first command is, directives are over. */
const inScript: CompletionSource = (context) => {
  const line = context.state.doc.lineAt(context.pos);
  if (!COMMENTS.test(context.state.sliceDoc(0, line.from))) return null;
  const [, mark = '', words, last = ''] =
    /^(#\w*)(\s(?:.*\s)?(-[\w-]*)?)?$/.exec(line.text.slice(0, context.pos - line.from)) ?? [];
  if (!mark) return null;
  if (words === undefined) {
    return {
      from: line.from,
      options: Object.keys(DIRECTIVES).map((label) => ({
        label,
        type: 'keyword',
        apply: put(`${label} `, /^\w* ?/),
      })),
      validFor: /^#\w*$/,
    };
  }
  const options = Object.hasOwn(DIRECTIVES, mark) ? (DIRECTIVES[mark] ?? []) : [];
  return {
    from: context.pos - last.length,
    options: options.map((label) => ({
      label,
      type: 'property',
      apply: put(label, /^[\w-]+=?/),
    })),
    validFor: /^-[\w-]*$/,
  };
};

/** A command file, or its configuration. */
function inCommands(): CompletionSource {
  const config = inYaml(wordsOf(COMMAND_CONFIG), []);
  const command = placeholders(AT_START);
  const isKey = new RegExp(`^(?:${Object.keys(COMMAND_CONFIG[''] ?? {}).join('|')}):`, 'm');
  return (context) => {
    const line = context.state.doc.lineAt(context.pos);
    const first = /^\w+$/.test(line.text) && COMMENTS.test(context.state.sliceDoc(0, line.from));
    if (first || isKey.test(context.state.sliceDoc())) return config(context);
    return line.text.startsWith('#') ? null : command(context);
  };
}

export function complete(dialect: Dialect): CompletionSource {
  switch (dialect) {
    case 'native':
      return inYaml(native, AT_START);
    case 'fedwhat':
      return inYaml(wordsOf(FEDWHAT), [...FEDWHAT_WORDS, ...AT_START]);
    case 'gpu_manager':
      return inJson(wordsOf(GPU_MANAGER), AT_START);
    case 'script':
      return inScript;
    case 'commands':
      return inCommands();
  }
}
