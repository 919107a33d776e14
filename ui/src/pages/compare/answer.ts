/** What the server says about two runs; see `strobe compare --json`. */

import { records, type Column, type TableAnswer } from '../../api';

interface PlainRows {
  readonly columns: readonly Column[];
  readonly rows: TableAnswer['rows'];
}

export interface ComparisonAnswer {
  readonly verdict: string;
  readonly is_different: boolean;
  readonly step_ratio: number | null;
  readonly step_ratio_low: number | null;
  readonly step_ratio_high: number | null;
  readonly steps_counted: readonly [number, number];
  readonly steps: PlainRows;
  readonly explanation: PlainRows;
  readonly operators: PlainRows;
  readonly devices: PlainRows;
  readonly amounts: PlainRows;
  readonly settings: PlainRows;
}

export interface PartRow {
  readonly part: string;
  readonly a_ns: number;
  readonly b_ns: number;
  readonly difference_ns: number;
  readonly ratio?: number | null;
}

export interface CauseRow extends PartRow {
  readonly what: string;
  readonly share: number | null;
}

export interface OperatorRow extends PartRow {
  readonly scope: string | null;
  readonly name: string;
  readonly input_shapes: string | null;
  readonly a_calls: number;
  readonly b_calls: number;
}

export interface AmountRow {
  readonly what: string;
  readonly a: number | null;
  readonly b: number | null;
}

export interface SettingRow {
  readonly what: string;
  readonly a: string | null;
  readonly b: string | null;
}

export function rowsOf<T>(rows: PlainRows): T[] {
  return records<T>({ ...rows, table: '', total: rows.rows.length });
}
