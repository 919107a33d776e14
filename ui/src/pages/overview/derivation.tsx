/** How a number came about, in the order of the arithmetic. */

import { maybe, t } from '../../i18n';
import * as units from '../../units';
import type { Figure } from './answers';

export function Derivation({
  of,
  figures,
  said,
}: {
  of: string;
  figures: readonly Figure[];
  said: (text: string) => string;
}) {
  if (figures.length === 0) return null;
  return (
    <details class="derivation">
      <summary>{t('overview.derivation', { of })}</summary>
      <ol>
        {figures.map((figure) => (
          <li key={figure.what}>
            <span class="number">{figureShown(figure)}</span> {said(figure.what)}
          </li>
        ))}
      </ol>
    </details>
  );
}

function figureShown({ value, unit }: Figure): string {
  if (unit === 'ns') return units.duration(value);
  if (unit === 'ratio') return units.percent(value);
  return `${units.count(value)} ${maybe(`overview.unit.${unit}`) ?? unit}`;
}
