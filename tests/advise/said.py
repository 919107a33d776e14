"""Whether a sentence of a rule is told in Chinese as a whole."""

import re

from strobe.show.chinese import in_chinese

# Two English words after each other are a phrase that was left over; these are code, or commands.
_CODE = re.compile(
    r"with (torch|model)|import gc|if (step|rank|tensor)|def \w+|strobe (run|show|import)"
    r"|run train|show RUN|run -- torchrun"
)
_ENGLISH = re.compile(r"(?<![\w.(])[a-z]{2,}[,:]? [a-z]{2,}(?![\w.=(])")


def english_left(sentence: str) -> str | None:
    """What is left of it, or None."""
    told = in_chinese(sentence)
    if told is None:
        return f"not in chinese.txt: {sentence}"
    left = _ENGLISH.search(_CODE.sub("", told))
    return f"{left[0]!r} in {told!r}, from {sentence!r}" if left else None
