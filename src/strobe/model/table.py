"""What a declared table is: its name, and a sentence for it and for each of its columns."""

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["i64", "f64", "str", "bool"]


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType
    doc: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
