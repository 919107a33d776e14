"""Whether a sentence of a rule is fully translated, and speaks of one framework only."""

import re

from strobe.advise.framework import JAX, MEGENGINE, MINDSPORE, TORCH
from strobe.show.text.chinese import in_chinese

# What only users of one framework write.
_WORDS = {
    TORCH: r"torch(?!_npu)|DistributedDataParallel|no_sync|comm_hook|state_dict|pin_memory"
    r"|non_blocking|foreach=|fused=|persistent_workers|index_add_|\.contiguous\(\)",
    JAX: r"\bjax\b|\bjnp\b|XLA_|\bnnx\b|\bgrain\b|orbax|donate_arg|copy_to_host_async",
    MINDSPORE: r"mindspore|MindSpore|\bMS_[A-Z]|num_parallel_workers|lazy_inline|use_one_hot",
    MEGENGINE: r"megengine|MegEngine|GradManager",
}

# Two English words after each other are a phrase that was left over; these are code, or commands.
_CODE = re.compile(
    r"with (torch|model)|import gc|if (step|rank|tensor)|def \w+|strobe (run|show|import)"
    r"|run train|show RUN|run -- torchrun"
    r"|其他程序（.*?）"  # names of programs that ran on the machine
)
_ENGLISH = re.compile(r"(?<![\w.(])[a-z]{2,}[,:]? [a-z]{2,}(?![\w.=(])")


def english_left(sentence: str) -> str | None:
    """What is left of it, or None."""
    told = in_chinese(sentence)
    if told is None:
        return f"not in chinese.txt: {sentence}"
    left = _ENGLISH.search(_CODE.sub("", told))
    return f"{left[0]!r} in {told!r}, from {sentence!r}" if left else None


def of_others(text: str, framework: str) -> list[str]:
    """Words of other frameworks than this one."""
    others = (re.search(sign, text) for name, sign in _WORDS.items() if name != framework)
    return [found[0] for found in others if found]
