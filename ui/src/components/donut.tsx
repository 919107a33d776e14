/** Parts of a whole: a ring, or bars, each part a button. Colour never stands alone: every part has its name. */

import { t } from '../i18n';
import { Cut } from './cut';
import * as units from '../units';
import './donut.css';

export interface Part {
  readonly key: string;
  readonly label: string;
  readonly value: number;
  /** As text, for the list. */
  readonly text: string;
}

interface Props {
  readonly label: string;
  readonly parts: readonly Part[];
  /** Of which the parts are shares; more than their sum if some are left out. */
  readonly total: number;
  readonly form: 'ring' | 'bars';
  readonly onPick?: (part: Part) => void;
  readonly selected?: string | null;
}

const COLORS = 8;
/** Beyond these a slice is too thin to be told from its neighbours. */
const MOST_SLICES = 8;
const RADIUS = 42;
const THICKNESS = 16;

export function PartsOfWhole({ label, parts, total, form, onPick, selected }: Props) {
  const whole = total > 0 ? total : 1;
  const largest = Math.max(...parts.map((part) => part.value), 1e-12);
  return (
    <figure class={`whole whole-${form}`} aria-label={label}>
      {form === 'ring' && (
        <Ring
          parts={parts}
          whole={whole}
          label={label}
          onPick={onPick}
          selected={selected ?? null}
        />
      )}
      <ul>
        {parts.map((part, at) => {
          const inside = (
            <>
              <span
                class={`whole-mark kind-${form === 'bars' || at < MOST_SLICES ? (at % COLORS) + 1 : 'rest'}`}
                aria-hidden="true"
              />
              <span class="whole-name mono">
                <Cut text={part.label} />
              </span>
              {form === 'bars' && (
                <span class="whole-track">
                  <span class="whole-fill" style={{ width: `${(part.value / largest) * 100}%` }} />
                </span>
              )}
              <span class="whole-text number">{part.text}</span>
              <span class="whole-share number">{units.percent(part.value / whole)}</span>
            </>
          );
          return (
            <li key={part.key} class={selected === part.key ? 'is-selected' : ''}>
              {onPick ? (
                <button type="button" class="quiet" title={part.label} onClick={() => onPick(part)}>
                  {inside}
                </button>
              ) : (
                <span class="whole-row" title={part.label}>
                  {inside}
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

function Ring({
  parts,
  whole,
  label,
  onPick,
  selected,
}: {
  parts: readonly Part[];
  whole: number;
  label: string;
  onPick: ((part: Part) => void) | undefined;
  selected: string | null;
}) {
  const shown = parts.slice(0, MOST_SLICES);
  let angle = 0;
  const slices = shown.map((part, at) => {
    const from = angle;
    angle += part.value / whole;
    return (
      <path
        key={part.key}
        class={`slice kind-${at + 1} ${selected === part.key ? 'is-selected' : ''} ${onPick ? 'is-clickable' : ''}`}
        d={arc(from, angle)}
        onClick={onPick && (() => onPick(part))}
      >
        <title>{`${part.label} · ${part.text} · ${units.percent(part.value / whole)}`}</title>
      </path>
    );
  });
  const rest = 1 - angle;
  return (
    <svg class="ring" viewBox="-50 -50 100 100" role="img" aria-label={label}>
      {slices}
      {rest > 1e-6 && (
        <path class="slice kind-rest" d={arc(angle, 1)}>
          <title>{`${t('table.rest')} · ${units.percent(rest)}`}</title>
        </path>
      )}
    </svg>
  );
}

/** A piece of the ring, between two parts of the whole turn. */
function arc(from: number, to: number): string {
  // A whole turn would begin and end at one point, and be nothing.
  const end = Math.min(to, from + 0.99999);
  const outer = RADIUS;
  const inner = RADIUS - THICKNESS;
  const isLong = end - from > 0.5 ? 1 : 0;
  const [a, b, c, d] = [
    point(from, outer),
    point(end, outer),
    point(end, inner),
    point(from, inner),
  ];
  return `M${a} A${outer} ${outer} 0 ${isLong} 1 ${b} L${c} A${inner} ${inner} 0 ${isLong} 0 ${d} Z`;
}

function point(turn: number, radius: number): string {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return `${(radius * Math.cos(angle)).toFixed(3)} ${(radius * Math.sin(angle)).toFixed(3)}`;
}
