"""Every error a user can see. One family, one shape: what, where, what to do."""


class StrobeError(Exception):
    """Base of all expected failures. Bugs raise something else and show a traceback."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.hint = what, where, hint

    def __str__(self) -> str:
        lines = [f"error: {self.what}"]
        if self.where:
            lines.append(f"  --> {self.where}")
        if self.hint:
            lines.append(f"  help: {self.hint}")
        return "\n".join(lines)


class UsageError(StrobeError):
    """The command line or a call asks for something that does not exist or cannot be."""

    exit_code = 2


class UnreadableTrace(StrobeError):
    """A file is not in a format we know, or is broken."""

    exit_code = 3


class NoSuchRun(UnreadableTrace):
    """There is no such run: there never was, it was removed, or it must not be looked at."""

    exit_code = 2


class MissingData(StrobeError):
    """The run was recorded without something this question needs."""

    exit_code = 4


class MissingPackage(StrobeError):
    """An optional package is needed; the hint is the exact command that installs it."""

    exit_code = 5
