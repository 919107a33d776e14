import { Missing } from '../../components/loaded';
import { t } from '../../i18n';

/** Why there are no operators, and what would record them. */
export function NoOperators() {
  return <Missing why={t('operators.none')} command="strobe run --steps 6:11 train.py" />;
}
