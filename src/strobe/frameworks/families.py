"""The family of an operator, decided by its name, for the column `op_args.family`.

Names are matched as a whole, in lower case and without their library, marks of in-place and
backward operators, and numbers: aten::_softmax_backward_data, Default/net/MatMul-op3, dot.20. The
first family with a matching pattern counts. An operator without a family is not the usual work of
networks, nor of a kind that has a fix of its own.
"""

import functools
import re

from strobe.frameworks.graph_names import graph_name

# With the library, because a name such as `send` is communication only there.
_COLLECTIVE = re.compile(
    r"""(_?c10d\w*|_dtensor|fsdp|symm_mem|gloo|nccl|hccl|mpi|ucc)::.*
    | (\w+::)?_*(
        all_?reduce\w* | all_?gather\w* | all_?to_?all\w* | reduce_?scatter\w* | broadcast_?
        | (i?send|i?recv)(_any_source)?_? | barrier | monitored_barrier | (\w+_)?wait(_\w+)?
        | \w*synchroni[sz]e\w* | record_param_comms | pmean | psum\w* | ppermute
    )""",
    re.VERBOSE | re.IGNORECASE,
)

# By the name that a model, a graph or a program calls. More special families come first.
_PATTERNS = {
    "callback": r"\w*callback\w*",
    "one-hot": r"one_?hot",
    "loss": r"\w*loss\w* | \w*cross_?entropy\w* | kl_div | cosine_similarity",
    "random": r"\w*dropout\w* | bernoulli | rand\w* | (log_)?normal | uniform | rng_\w+",
    "reduction": r"""(linalg_)?(vector_|matrix_)?norm | (frobenius|nuclear)_norm
        | (reduce_?)?(sum|mean|amax|amin|max|min|any|all|prod) | reduce_(and|or)
        | argmax | argmin | var | std | var_mean | std_mean | logsumexp""",
    "normalization": r"\w*norm\w*",
    "attention": r"\w*attention\w* | \w*multi_head\w* | \w*transformer\w*",
    "recurrent": r"(lstm|gru|rnn)\w* | \w*rnn\w* | thnn_fused_(lstm|gru)\w*",
    "convolution": r"\w*conv\w*",
    "matmul": r"""linear | \w*matmul\w* | mm | bmm | addmm | baddbmm | addbmm | addmv | mv
        | dot(_general)? | einsum | bilinear | \w*sparse_\w*mm\w* | tensordot | inner | outer | ger
        | vdot | chain_matmul | linalg_multi_dot | dense | (batched_)?matrix_mul | \w+_mm""",
    "pooling": r"\w*pool\w*",
    "activation": r"""\w*softmax\w* | relu6? | \w*elu\w* | gelu | silu | sigmoid | log_?sigmoid\w*
        | tanh | hard\w+ | mish | softplus | softsign | threshold\w* | glu | logistic""",
    "embedding": r"embedding\w*",
    "top-k": r"(approx_)?top_?k\w*",
    "sort": r"(arg|m)?sort(_\w+)? | (nan)?(median|quantile) | kthvalue | mode",
    "cumulative sum": r"cumsum | cumulative_?sum | cumsumext",
    "scan": r"cum(prod|max|min|logsumexp) | logcumsumexp | cummax_helper | cummin_helper",
    "distance": r"\w*(cdist|pdist|pairwise)\w*",
    "fft": r"fft | i?r?fftn?2? | fft_\w+ | stft | istft",
    "linear algebra": r"""linalg_\w+ | svd\w* | eig\w* | inv | inverse | pinverse | (s?log_?)?det
        | cholesky\w* | qr | geqrf | orgqr | ormqr | lu | lu_\w+ | (\w+_)?solve | spsolve | lstsq
        | symeig | (log)?matrix_?(exp\w*|power|rank|inverse|solve|determinant)
        | householder_product | schur | hessenberg | tridiagonal | lobpcg | pca_lowrank""",
    "special function": r"""erf(c|cx|inv)? | erf_inv | (m?v?l|di|poly|i)gamma\w* | lgamma | zeta
        | bessel\w* | i[01]e? | special_\w+""",
    "sampling": r"multinomial | poisson | geometric | exponential | cauchy | binomial"
    r" | standard_gamma | random_gamma | sample_\w+",
    "scatter": r"\w*scatter\w* | (unsafe_)?index_(put|add|copy|fill|reduce)\w* | put\w*"
    r" | bincount | histc",
    "gather": r"(unsafe_)?index | gather\w* | take\w*",
    "filter": r"nonzero\w* | masked_select | argwhere | unique\w*",
    "elementwise": r"""
        (add|sub|rsub|mul|div|neg|abs|absolute|sqrt|rsqrt|square|exp|expm1|log|log1p|log2|reciprocal|sign
        |sin|cos|pow|addcmul|addcdiv|lerp|where|masked_fill|maximum|minimum|floor|ceil|round
        |remainder) | \w*clamp\w* | clip | eq | ne | lt | le | gt | ge | isnan | isinf | isfinite
        | (bitwise|logical)_\w+ | biasadd | realdiv | tensoradd | integer_pow | select_n | greater
        | less""",
    "fill": r"""zeros\w* | ones\w* | empty\w* | full\w* | new_\w+ | arange | linspace | zero | fill
        | triu | tril | tensor | scalar_tensor | iota""",
    "copy": r"""clone | contiguous | copy | to | to_copy | type_as | cat | concat(enate)?
        | (\w+_|[hvd])?stack | repeat | pad | constant_pad\w* | reflection_pad\w*
        | replication_pad\w* | pixel_\w+ | convert_element_type""",
    "view": r"""view\w* | reshape\w* | flatten | unflatten | permute | transpose | t | numpy_t
        | unsqueeze | squeeze | expand\w* | chunk | split\w* | unbind | select | slice | narrow
        | index_select | unsafe_view | alias | detach | broadcast_in_dim | dynamic_slice""",
    "update": r"""foreach_\w+ | fused_\w+
        | (apply|fused)?(adamw?|lamb|lion|momentum|sgd|ftrl|rmsprop|adagrad)\w*""",
    "bookkeeping": r"""item | lift\w* | resolve_\w+ | set | local_scalar_dense | is_\w+
        | requires_grad | retain_grad | result_type | can_cast | record\w*""",
}  # fmt: skip

_FAMILIES = {
    family: re.compile(pattern, re.VERBOSE | re.ASCII) for family, pattern in _PATTERNS.items()
}
_NUMBER = re.compile(r"(-op|\.)\d+$")
_BACKWARD = re.compile(r"_*(backward(_data)?\d*|grad(v\d)?)$")


@functools.lru_cache(maxsize=1 << 16)
def family_of(name: str, node: str | None = None) -> str | None:
    """The family of an operator; in a graph, that of the primitive it was compiled from."""
    found = graph_name(node) if node is not None else None
    if found is not None and (family := family_of(found.primitive)) is not None:
        return family
    bare = _bare(name)
    if _COLLECTIVE.fullmatch(name) or _COLLECTIVE.fullmatch(bare):
        return "communication"
    names = (bare, _BACKWARD.sub("", bare))
    return next(
        (family for name in names for family, pattern in _FAMILIES.items()
         if pattern.fullmatch(name)),
        None,
    )  # fmt: skip


def _bare(name: str) -> str:
    """softmax_backward_data of aten::_softmax_backward_data."""
    last = name.rpartition("::")[2].rpartition(": ")[2].rpartition("/")[2]
    return _NUMBER.sub("", last).replace("-", "_").strip("_").lower()
