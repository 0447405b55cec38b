import { Switch as RadixSwitch, ToggleGroup } from 'radix-ui';
import { useId, type InputHTMLAttributes, type ReactNode } from 'react';

export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ReactNode;
  error?: string | null;
  children: (id: string, describedBy: string | undefined) => ReactNode;
}) {
  const id = useId();
  const about = hint || error ? `${id}-about` : undefined;
  return (
    <div className={`field ${error ? 'wrong' : ''}`}>
      <label htmlFor={id}>{label}</label>
      {children(id, about)}
      {about && (
        <div id={about} className="field-about">
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

export function TextField({
  label,
  hint,
  error,
  value,
  onChange,
  ...rest
}: Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
  label: string;
  hint?: ReactNode;
  error?: string | null;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error ?? null}>
      {(id, about) => (
        <input
          id={id}
          className="input"
          value={value}
          aria-describedby={about}
          aria-invalid={error ? true : undefined}
          onChange={(event) => onChange(event.target.value)}
          {...rest}
        />
      )}
    </Field>
  );
}

export function Select({
  label,
  value,
  options,
  onChange,
  hidden = false,
  disabled = false,
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
  hidden?: boolean;
  disabled?: boolean;
}) {
  const id = useId();
  return (
    <div className={hidden ? 'select-inline' : 'field'}>
      <label htmlFor={id} className={hidden ? 'visually-hidden' : ''}>
        {label}
      </label>
      <select
        id={id}
        className="input select"
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
      >
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Segmented<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: readonly (readonly [T, ReactNode])[];
  onChange: (value: T) => void;
}) {
  return (
    <ToggleGroup.Root
      type="single"
      className="segmented"
      aria-label={label}
      value={value}
      onValueChange={(next) => next && onChange(next as T)}
    >
      {options.map(([name, text]) => (
        <ToggleGroup.Item key={name} value={name} className="segment">
          {text}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}

export function Switch({
  label,
  checked,
  onChange,
  disabled = false,
  hidden = false,
}: {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  hidden?: boolean;
}) {
  const id = useId();
  return (
    <span className="switch-field">
      <RadixSwitch.Root
        id={id}
        className="switch"
        checked={checked}
        disabled={disabled}
        onCheckedChange={onChange}
      >
        <RadixSwitch.Thumb className="switch-thumb" />
      </RadixSwitch.Root>
      <label htmlFor={id} className={hidden ? 'visually-hidden' : ''}>
        {label}
      </label>
    </span>
  );
}
