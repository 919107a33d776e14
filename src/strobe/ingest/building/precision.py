"""The type that a matrix product or convolution multiplies in, by the name of its kernel.

Accumulators and storage may have another type. Kernels without matrix products, and names without a
type (Triton's, Ascend's), have none.
"""

import re

_PRODUCT = re.compile(
    r"(?<!fb)gemm|gemv|scudnn|hcudnn|convolve|winograd|[dw]grad\w*_engine|nvjet|Cijk_|miopenSp3"
    r"|(?:xmma|tensorop|simt)_\w*?(?:fprop|dgrad|wgrad)|flash_(?:fwd|bwd)|fmha|_matmul_",
    re.IGNORECASE,
)
# Every name that matches the pattern contains one of these, which are found much faster.
_WORDS = (
    "gemm", "gemv", "cudnn", "convolve", "winograd", "grad", "nvjet", "cijk_", "miopensp3", "fprop",
    "flash_", "fmha", "_matmul_",
)  # fmt: skip
# The first match wins: names of low precision also contain the float32 that they accumulate in.
_TYPES = tuple(
    (precision, re.compile(pattern))
    for precision, pattern in (
        ("float8", r"e4m3|e5m2|E4m3|E5m2|fp8|Float8|_F8"),
        ("bfloat16", r"bf16|BFloat16|bfloat16|Bfloat16|Cijk_\w+?_(?:BBS|BSS|B)_|nvjet_tst"),
        ("float16", r"fp16|f16f16|_f16_|(?i:half)|h884|s884|h1688|h16816|hgemm|hcudnn|HMMA"
                    r"|Cijk_\w+?_(?:HHS|HSS|H)_|nvjet_hsh"),
        ("tf32", r"tf32|tensorop_s1688|tensorop_s16816(?!\w*f16)|_s1688(?:gemm|fprop|dgrad|wgrad)"
                 r"|nvjet_sss"),
        ("float64", r"dgemm|f64f64|double|Cijk_\w+?_D_"),
        ("int8", r"imma|i8816|int8|i8i8"),
        ("float32", r"sgemm|scudnn|<float|float,|fp32|f32f32|ffma|gemvNSP|gemv|Cijk_\w+?_SB?_"
                    r"|winograd"),
    )
)  # fmt: skip


def precision_of(name: str) -> str:
    """One of the types above; empty if the name does not show it."""
    lower = name.lower()
    if not any(word in lower for word in _WORDS) or not _PRODUCT.search(name):
        return ""
    return next((precision for precision, pattern in _TYPES if pattern.search(name)), "")
