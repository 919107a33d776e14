"""Every error a user can see. One family, one shape: what, where, what to do."""

from typing import Any, TypeVar

_Error = TypeVar("_Error", bound="StrobeError")


class StrobeError(Exception):
    """Base of all expected failures. Bugs raise something else and show a traceback."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.hint = what, where, hint

    @classmethod
    def of(cls: type[_Error], id: str, *, where: str = "", hint: str = "", **values: Any) -> _Error:
        """The error of a message id, with `hint` or the message `ID-hint`, if there is one."""
        from strobe.messages import has_message, message

        if not hint and has_message(f"{id}-hint"):
            hint = message(f"{id}-hint", **values)
        return cls(message(id, **values), where=where, hint=hint)

    def __str__(self) -> str:
        """In the user's language."""
        from strobe.messages import localized

        lines = [localized("errors/labels.error", what=self.what)]
        if self.where:
            lines.append(f"  --> {self.where}")
        if self.hint:
            lines.append(f"  {localized('errors/labels.help', hint=self.hint)}")
        return "\n".join(lines)


class UsageError(StrobeError):
    """The command line or a call asks for something that does not exist or cannot be."""

    exit_code = 2


class UnreadableTrace(StrobeError):
    """A file is not in a format we know, or is broken."""

    exit_code = 3


class NoSuchRun(UnreadableTrace):
    """There is no such run: it never existed, was removed, or must not be read."""

    exit_code = 2


class MissingData(StrobeError):
    """The run was recorded without something this question needs."""

    exit_code = 4


class MissingPackage(StrobeError):
    """An optional package is needed; the hint is the exact command that installs it."""

    exit_code = 5
