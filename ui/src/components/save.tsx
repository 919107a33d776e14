import { t } from '../i18n';
import { saveText } from './saving';

interface SavedColumn<Row> {
  readonly name: string;
  readonly value: (row: Row) => unknown;
  readonly isNeverSorted?: boolean;
}

interface Props<Row> {
  readonly name: string;
  readonly columns: readonly SavedColumn<Row>[];
  readonly rows: readonly Row[];
}

/** Buttons that save rows which are all here as CSV or JSON. */
export function Save<Row>({ name, columns, rows }: Props<Row>) {
  const saved = columns.filter((column) => !column.isNeverSorted);
  return (
    <div class="save">
      <button
        type="button"
        class="quiet small"
        onClick={() => saveText(csv(saved, rows), 'text/csv', `${name}.csv`)}
      >
        {t('shell.csv')}
      </button>
      <button
        type="button"
        class="quiet small"
        onClick={() => saveText(json(saved, rows), 'application/json', `${name}.json`)}
      >
        {t('shell.json')}
      </button>
    </div>
  );
}

function csv<Row>(columns: readonly SavedColumn<Row>[], rows: readonly Row[]): string {
  const lines = [
    columns.map((column) => column.name),
    ...rows.map((row) => columns.map((column) => column.value(row))),
  ];
  return lines.map((line) => line.map(quoted).join(',')).join('\n') + '\n';
}

function json<Row>(columns: readonly SavedColumn<Row>[], rows: readonly Row[]): string {
  return JSON.stringify(
    rows.map((row) =>
      Object.fromEntries(columns.map((column) => [column.name, column.value(row) ?? null])),
    ),
    null,
    1,
  );
}

function quoted(value: unknown): string {
  const text = value == null ? '' : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
