/** The tree of a model as an icicle: the wider, the more time. A click goes into a branch. */

import { useMemo } from 'preact/hooks';
import { t } from '../i18n';
import * as units from '../units';
import { Cut } from './cut';
import { layout, type Branch } from './icicle_layout';
import './icicle.css';

export interface ModuleBranch extends Branch {
  readonly kind: string | null;
  readonly share: number;
  readonly calls: number;
}

interface Props {
  readonly label: string;
  readonly branches: readonly ModuleBranch[];
  /** The branch that is looked into; null: the whole tree. */
  readonly root: string | null;
  readonly onRoot: (scope: string | null) => void;
}

const ROW_PX = 26;
const COLORS = 8;
/** A name in a narrower box would be only its first letters. */
const LABELLED = 0.03;
/** A wider box has room for the class and the share as well. */
const ROOMY = 0.15;

export function Icicle({ label, branches, root, onRoot }: Props) {
  const boxes = useMemo(() => layout(branches, root), [branches, root]);
  const colors = useMemo(() => colorsOf(branches), [branches]);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
  return (
    <div class="icicle-frame">
      <nav class="icicle-path" aria-label={t('operators.path')}>
        <button type="button" class="quiet" disabled={root === null} onClick={() => onRoot(null)}>
          {t('operators.wholeModel')}
        </button>
        {root !== null &&
          crumbs(root).map((scope) => (
            <button
              key={scope}
              type="button"
              class="quiet mono"
              disabled={scope === root}
              onClick={() => onRoot(scope)}
            >
              {lastPart(scope)}
            </button>
          ))}
      </nav>
      <div
        class="icicle"
        role="group"
        aria-label={label}
        style={{ height: `${(depth + 1) * ROW_PX}px` }}
      >
        {boxes.map(({ branch, depth: row, left, width }) => (
          <button
            key={branch.scope}
            type="button"
            class={`icicle-box kind-${colors.get(branch.kind ?? '') ?? 'rest'}`}
            style={{
              left: `${left * 100}%`,
              width: `calc(${width * 100}% - 1px)`,
              top: `${row * ROW_PX}px`,
            }}
            title={told(branch)}
            aria-label={told(branch)}
            onClick={() => onRoot(branch.scope === root ? parentOf(branch.scope) : branch.scope)}
          >
            {width >= ROOMY ? (
              <>
                {lastPart(branch.scope) || t('operators.wholeModel')}{' '}
                <span class="icicle-more">
                  {branch.kind ?? ''} {units.percent(branch.share)}
                </span>
              </>
            ) : (
              width >= LABELLED && (
                <Cut text={lastPart(branch.scope) || t('operators.wholeModel')} tail={6} />
              )
            )}
          </button>
        ))}
      </div>
      <ul class="icicle-legend">
        {[...colors].map(([kind, color]) => (
          <li key={kind}>
            <span class={`icicle-mark kind-${color}`} aria-hidden="true" />
            <span class="mono">{kind || t('operators.container')}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function told({ scope, kind, value, share, calls }: ModuleBranch): string {
  return `${scope || t('operators.wholeModel')}${kind ? ` (${kind})` : ''} · ${units.duration(value)} · ${units.percent(share)} · ${t('operators.calls', { count: units.count(calls) })}`;
}

/** The classes with most time have a colour each. */
function colorsOf(branches: readonly ModuleBranch[]): Map<string, number> {
  const times = new Map<string, number>();
  for (const { kind, value } of branches)
    times.set(kind ?? '', (times.get(kind ?? '') ?? 0) + value);
  const largest = [...times]
    .filter(([kind]) => kind !== '')
    .sort((a, b) => b[1] - a[1])
    .slice(0, COLORS);
  return new Map(largest.map(([kind], at) => [kind, at + 1]));
}

function crumbs(scope: string): string[] {
  const parts = scope.split('.');
  return parts.map((_, at) => parts.slice(0, at + 1).join('.'));
}

function lastPart(scope: string): string {
  return scope.slice(scope.lastIndexOf('.') + 1);
}

function parentOf(scope: string): string | null {
  const at = scope.lastIndexOf('.');
  return at < 0 ? null : scope.slice(0, at);
}
