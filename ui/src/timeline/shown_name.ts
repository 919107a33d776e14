/** The name of an event in the language of the page: steps and their parts are Strobe's own words, all else is as recorded. */

import { maybe, t } from '../i18n';

export function shownName(kind: string | null, name: string): string {
  if (kind === 'phase') return maybe(`steps.part.${name}`) ?? name;
  const step = kind === 'step' ? /^step (\d+)$/.exec(name)?.[1] : undefined;
  return step === undefined ? name : t('timeline.stepName', { step });
}
