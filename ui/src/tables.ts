/** Tables of a run for components; while the run goes on, they take up what is new. */

import { ofRun, useAnswer, type Loading, type Parameters, type TableAnswer } from './api';
import { useGrowing } from './growing';

/** Any stored table or analysis; `name` null asks nothing yet. */
export function useTable(
  run: string,
  name: string | null,
  parameters: Parameters = {},
): Loading<TableAnswer> {
  const { revision } = useGrowing(run);
  return useAnswer<TableAnswer>(
    name === null ? null : ofRun(run, `table/${name}`),
    parameters,
    revision,
  );
}
