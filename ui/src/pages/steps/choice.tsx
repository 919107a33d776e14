/** Which steps the pages of a run are about; it stands in the address. */

import { useEffect, useState } from 'preact/hooks';
import { t } from '../../i18n';
import { route, setQuery } from '../../router';
import './steps.css';

export interface StepRange {
  readonly first: number;
  readonly last: number;
}

/** `steps=10:20` of the address. */
export function chosenRange(): StepRange | null {
  const match = /^(\d+):(\d+)$/.exec(route.value.query.steps ?? '');
  return match === null ? null : { first: Number(match[1]), last: Number(match[2]) };
}

export function setRange(range: StepRange | null): void {
  setQuery({ steps: range === null ? null : `${range.first}:${range.last}` }, { push: true });
}

/** One step to look at; the way back leads to what was seen before. */
export function chooseStep(step: number | null): void {
  setQuery({ step }, { push: true });
}

export function RangeChoice({ whole }: { whole: StepRange }) {
  const chosen = chosenRange();
  const { first, last } = chosen ?? whole;
  const choose = (next: StepRange) => {
    const kept = {
      first: Math.max(whole.first, Math.min(next.first, next.last)),
      last: Math.min(whole.last, Math.max(next.first, next.last)),
    };
    setRange(kept.first <= whole.first && kept.last >= whole.last ? null : kept);
  };
  return (
    <fieldset class="choice">
      <legend>{t('steps.range')}</legend>
      <StepNumber
        label={t('steps.from')}
        value={first}
        onChange={(value) => choose({ first: value, last })}
      />
      <span aria-hidden="true">–</span>
      <StepNumber
        label={t('steps.to')}
        value={last}
        onChange={(value) => choose({ first, last: value })}
      />
      <button type="button" disabled={chosen === null} onClick={() => setRange(null)}>
        {t('steps.all')}
      </button>
    </fieldset>
  );
}

function StepNumber({
  label,
  value,
  onChange,
}: {
  label: string;
  value: number;
  onChange: (value: number) => void;
}) {
  const [text, setText] = useState(String(value));
  useEffect(() => setText(String(value)), [value]);
  return (
    <input
      class="step-number"
      type="text"
      inputMode="numeric"
      aria-label={label}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={() => (/^\d+$/.test(text.trim()) ? onChange(Number(text)) : setText(String(value)))}
    />
  );
}
