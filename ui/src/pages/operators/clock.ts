/** Whether times of operators are of a device: where a run has one, device time comes first. */

import { records, type Parameters } from '../../api';
import { useTable } from '../../tables';
import { t } from '../../i18n';

/** Null while it is not known. */
export function useIsOfDevice(run: string, parameters: Parameters): boolean | null {
  const first = useTable(run, 'operator-types', { ...parameters, limit: 1 });
  return first.state === 'ready'
    ? records<{ device_ns: number | null }>(first.value).some((row) => row.device_ns !== null)
    : first.state === 'failed'
      ? false
      : null;
}

/** Beside device time, the host's must say whose it is. */
export function headings(isOfDevice: boolean): Record<string, string> | undefined {
  return isOfDevice
    ? {
        self_ns: t('operators.hostSelf'),
        total_ns: t('operators.hostTotal'),
        mean_ns: t('operators.hostMean'),
        operators_ns: t('operators.hostTime'),
      }
    : undefined;
}
