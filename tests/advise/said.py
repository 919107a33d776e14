"""Whether a sentence of a rule is fully translated, and speaks of one framework only."""

import re

from strobe.frameworks import JAX, MEGENGINE, MINDSPORE, TORCH, Framework
from strobe.messages import CHINESE, Message, in_language

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
    if not isinstance(sentence, Message) or not sentence.id:
        return f"not a message of the catalogue: {sentence}"
    chinese = in_language(sentence, CHINESE)
    left = _ENGLISH.search(_CODE.sub("", chinese))
    return f"{left[0]!r} in {chinese!r}, from {sentence!r}" if left else None


def of_others(text: str, framework: Framework) -> list[str]:
    """Words of other frameworks than this one."""
    others = (re.search(sign, text) for name, sign in _WORDS.items() if name != framework)
    return [found[0] for found in others if found]
