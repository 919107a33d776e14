"""Every table in one JSON file: {"ok", "run", "summary", "tables": {name: {"columns", "rows"}}}."""

from pathlib import Path

from strobe.analyse.lookup import declaration, table_names, table_of
from strobe.analyse.summary import summarise
from strobe.show.atomic import whole_file
from strobe.show.text.table import rows, to_json, write_json
from strobe.store.run import Run

NAME = "json"
DOC = "one file with the summary and every table"


def write(run: Run, path: Path) -> None:
    with whole_file(path) as out:
        out.write(f'{{"ok": true, "run": {to_json(run.manifest.to_json())},\n')
        out.write(f'"summary": {to_json(summarise(run))},\n"tables": {{')
        separator = "\n"
        for name in table_names():
            table = declaration(name)
            out.write(f"{separator}{to_json(name)}: ")
            write_json(table, rows(run.connection, table_of(run, name), table), out)
            separator = ","
        out.write("}}\n")
