"""All that a page shows of an advice, in Chinese, by the English text."""

from collections.abc import Iterator

from strobe.advise import Advice
from strobe.messages import CHINESE, Message, in_language


def book(advice: Advice) -> dict[str, str]:
    """The Chinese text of every message, by the English one."""
    return {
        str(text): in_language(text, CHINESE)
        for text in texts(advice) if isinstance(text, Message)
    }  # fmt: skip


def texts(advice: Advice) -> Iterator[str]:
    """Every sentence of an advice."""
    yield advice.verdict
    for finding in (*advice.conditions.values(), *advice.findings.values()):
        yield finding.title
        if finding.why:
            yield finding.why
        yield from (figure.what for figure in finding.derivation)
        yield from finding.fixes
    for clear in advice.clear.values():
        yield clear.why
    for unknown in advice.cannot_tell.values():
        yield unknown.reason
        yield unknown.hint
