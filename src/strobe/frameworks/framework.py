"""What Strobe knows about a framework: the one description that rules and analyses ask.

Every field has a neutral default, so a framework that leaves a field out gets no advice that was
written for another one. Parts of paths are searched in the stacks of samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LoopLimits:
    """From when on a Python loop calls tiny operators too often."""

    fewest_calls: int  # per step
    tiny_ns: int  # an operator this short is mostly its own call
    longest_gap_ns: int  # Python between two calls of a loop; a longer gap has another reason


@dataclass(frozen=True)
class Loss:
    """The part of an operator's time that float64 costs: typically, and at least and at most."""

    ratio: float
    bounds: tuple[float, float]


@dataclass(frozen=True)
class DoubleLosses:
    """What float64 costs on a CPU."""

    usual: Loss
    slow: Loss  # of operators without a fast implementation for float64
    slow_families: tuple[str, ...] = ()


@dataclass(frozen=True)
class DebugMode:
    """A mode that slows training down."""

    cost: str = ""  # how the rule `debug-mode` measures it; empty: a recording does not show it
    fix: str = "turn-off"  # the message of the rule that says how to turn it off
    name: str = ""  # what users call it; empty: as it is recorded
    title: str = ""  # the message of the rule that says what it is, where a name does not
    argument: str = ""  # of the call that turns it off


@dataclass(frozen=True)
class Compiler:
    """The compiler of a framework."""

    name: str  # as users know it
    message: str  # of the rule `warm-up`: this compiler took the time
    paths: tuple[str, ...]  # where it runs
    is_optional: bool = False  # whether training runs without it too


@dataclass(frozen=True)
class Iterator:
    """A library whose iterators prepare batches in advance."""

    title: str  # what users call it
    fixes: tuple[str, ...]  # messages of the rule `data-starvation`


# Measured with PyTorch, the framework whose calls are cheapest.
_LOOPS = LoopLimits(fewest_calls=100, tiny_ns=30_000, longest_gap_ns=100_000)

# Compared with float32: twice the bytes and half the arithmetic. Measured on a CPU with XLA: 0.2 of
# a normalization, 0.4 of a small product, 0.5 of a large one or a convolution, 0.65 of Adam.
_HALF = Loss(0.5, (0.35, 0.6))


@dataclass(frozen=True, eq=False)
class Framework:
    """A framework. What a field names belongs to this framework alone."""

    name: str  # in `fix-NAME.toml`
    packages: tuple[str, ...] = ()  # in run.json

    # Names that are recorded.
    events: str = ""  # a pattern of names of events that only it writes
    forward_nodes: str = ""  # a pattern of names in its graphs: an operator of the forward pass
    update_nodes: str = ""  # the same: an operator of the optimizer
    looped_nodes: str = ""  # the same: an operator that a program repeats or adds by itself
    one_hot_scope: str = ""  # part of such a name: inside the function that makes one-hot vectors
    weight_gradients: tuple[str, ...] = ()  # convolutions whose inputs do not include the kernel
    float64: tuple[str, ...] = ()  # names of the dtype, complex numbers included

    # Paths and functions in stacks.
    module_call: str = ""  # the file that calls modules: frames inside it are the model's layers
    installed: str = ""  # a pattern of its files in traces whose paths begin with the package
    generated: tuple[str, ...] = ()  # code that it generates
    forward_function: str = ""  # the method of a model that is its forward pass
    frees_gradients: str = ""  # the function that clears gradients
    checkpoints: tuple[str, ...] = ()  # where checkpoints are saved
    loader_starts: tuple[str, ...] = ()  # where data loaders start
    single_operations: str = ""  # where operations are called one by one, outside of programs
    model_traversal: str = ""  # where a model is traversed around each call of a program
    result_checks: str = ""  # the function that checks results for NaN

    # How it computes.
    loops: LoopLimits = _LOOPS
    double: DoubleLosses = DoubleLosses(_HALF, _HALF)
    compiler: Compiler | None = None
    fewest_kernels: int = 10  # a step with fewer on its device was not recorded completely
    is_called_by_python: bool = True  # False: operators run in threads of its own
    records_gradients: bool = False  # of every forward pass, unless the script turns it off
    counts_threads: bool = False  # whether the recorder knows how many threads compute
    examines_inputs: bool = False  # whether the recorder examines inputs for padding
    parallel_products: tuple[str, ...] = ()  # operators that several threads compute together
    parallel_others: tuple[str, ...] = ()
    data_parallel: tuple[str, ...] = ()  # operators of the class that drives several devices

    # Optimizers by the name of their class.
    fused_optimizers: tuple[str, ...] = ()  # can update all parameters in one operator
    sparse_optimizers: tuple[str, ...] = ()  # take sparse gradients
    joint_updates: tuple[str, ...] = ()  # prefixes of operators that update many parameters

    # Its data pipelines.
    iterators: Mapping[str, Iterator] = field(default_factory=dict)  # by package
    pipeline_stages: Mapping[str, str] = field(default_factory=dict)  # what an operation does
    python_source: str = ""  # the operation that calls Python for every row

    debug_modes: Mapping[str, DebugMode] = field(default_factory=dict)  # as they are recorded

    def __str__(self) -> str:
        return self.name
