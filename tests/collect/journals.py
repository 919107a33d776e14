"""A journal that only notes what is written to it."""

from typing import NamedTuple

from strobe.model.journal import Mark


class Noted(NamedTuple):
    code: int
    ref: int
    value: int
    ts_ns: int
    thread: int


class NotedJournal:
    def __init__(self):
        self.names: list[str] = []
        self.marks: list[Noted] = []

    def string(self, kind, text):
        self.names.append(text)
        return len(self.names)

    def mark(self, code, ref=0, value=0, ts_ns=0, thread=0):
        self.marks.append(Noted(code, ref, value, ts_ns, thread))

    def text(self, ref):
        return self.names[ref - 1]

    def counters(self):
        """The last value of each."""
        return {self.text(m.ref): m.value for m in self.marks if m.code == Mark.COUNTER}
