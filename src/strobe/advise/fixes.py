"""What to change, in the words of each framework. No other module names a framework's functions.

Every fix has neutral words, for runs whose framework is unknown or has no better ones.
"""

from strobe.advise.framework import JAX, MEGENGINE, MINDSPORE, TORCH, UNKNOWN

# Where in the text the caller's own words go: a place in the code, a name.
GAP = "{}"

_FIXES: dict[str, dict[str, str]] = {
    # -- communication
    "overlap-exchange": {
        UNKNOWN: "let the exchange overlap the backward pass: send gradients in several parts, "
        "each as soon as it is computed",
        TORCH: "let the exchange overlap the backward pass: model = DistributedDataParallel(model) "
        "instead of all_reduce after loss.backward()",
        JAX: "let the exchange overlap the backward pass: with GPUs, "
        "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true before the command",
        MINDSPORE: "let the exchange overlap the backward pass, in a few parts: "
        'mindspore.set_auto_parallel_context(comm_fusion={"allreduce": {"mode": "size", '
        '"config": 32}})',
        MEGENGINE: "let the exchange overlap the backward pass: GradManager().attach("
        'model.parameters(), callbacks=[megengine.distributed.make_allreduce_cb("mean")])',
    },
    "exchange-at-once": {
        UNKNOWN: "send all gradients at once, as one flat array",
        TORCH: "send all gradients at once: one all_reduce of a flat tensor, or "
        "DistributedDataParallel's buckets",
        JAX: "send all gradients at once: one jax.lax.pmean of the whole tree, inside the "
        "compiled step",
        MINDSPORE: "send all gradients at once: mindspore.set_auto_parallel_context("
        'comm_fusion={"allreduce": {"mode": "auto", "config": None}})',
    },
    "exchange-less-often": {
        UNKNOWN: "send less often: sum the gradients of several batches up before they are "
        "exchanged, or a larger batch for each rank",
        TORCH: "send less often: `with model.no_sync():` around all batches of a step but the "
        "last, or a larger batch for each rank",
    },
    "exchange-smaller": {
        UNKNOWN: "send less: exchange gradients in bfloat16",
        TORCH: "send less: model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
    },
    # -- padding
    "pad-to-longest": {
        UNKNOWN: "pad each batch only to its own longest sample",
        TORCH: "pad each batch only to its own longest sample: torch.nn.utils.rnn.pad_sequence in "
        'collate_fn (transformers: DataCollatorWithPadding(tokenizer, padding="longest"))',
    },
    # -- launching, compiling
    "launch-graphs": {
        UNKNOWN: "launch more at once: compile the step into one graph",
        TORCH: 'launch whole graphs at once: torch.compile(model, mode="reduce-overhead")',
        JAX: "launch whole programs at once: put the whole step under one jax.jit",
        MINDSPORE: "launch whole graphs at once: mindspore.jit on the training step",
        MEGENGINE: "launch whole graphs at once: megengine.jit.trace on the training step",
    },
    "join-kernels": {
        UNKNOWN: "compile the step: a compiler joins small kernels and launches them together",
        TORCH: 'torch.compile(model, mode="reduce-overhead") joins small kernels and launches them '
        "together",
        JAX: "jax.jit of the whole step joins small kernels and launches them together",
        MINDSPORE: "mindspore.jit joins small kernels and launches them together",
        MEGENGINE: "megengine.jit.trace joins small kernels and launches them together",
    },
    "join-operators": {
        UNKNOWN: "a compiler joins small operators where the loop must stay",
        TORCH: "torch.compile(model) joins small operators where the loop must stay",
        JAX: "jax.jit joins small operators where the loop must stay",
        MINDSPORE: "mindspore.jit joins small operators where the loop must stay",
        MEGENGINE: "megengine.jit.trace joins small operators where the loop must stay",
    },
    "keep-device-memory": {
        UNKNOWN: "keep device memory between steps: free nothing in the loop, and use a batch that "
        "leaves some memory free",
        TORCH: "keep device memory between steps: no torch.cuda.empty_cache() in the loop, no "
        "PYTORCH_NO_CUDA_MEMORY_CACHING=1, and a batch that leaves some memory free",
        JAX: "keep device memory between steps: no XLA_PYTHON_CLIENT_ALLOCATOR=platform, no "
        ".delete() in the loop, and a batch that leaves some memory free",
    },
    "fuse-update": {
        UNKNOWN: "update all parameters in one launch: a fused optimizer",
        TORCH: "give the optimizer fused=True (or foreach=True): one launch for all parameters",
        JAX: "update all parameters in one program: the optimizer inside the compiled step",
    },
    # -- values that the host reads
    "read-values-rarely": {
        UNKNOWN: "keep the value on the device{}, and read it every hundred steps",
        TORCH: "keep the value on the device{} (total += loss.detach()), and read it with .item() "
        "or .numpy() every hundred steps",
        JAX: "keep the value on the device{} (total += loss), and read it with float() every "
        "hundred steps",
        MINDSPORE: "keep the value on the device{}, and read it with .asnumpy() every hundred "
        "steps",
        MEGENGINE: "keep the value on the device{} (total += loss.detach()), and read it with "
        ".item() or .numpy() every hundred steps",
    },
    "select-on-device": {
        UNKNOWN: "select on the device, with a mask of a fixed shape, what now needs the value in "
        "Python",
        TORCH: "replace what needs the value in Python (if tensor:, nonzero, boolean indexing) by "
        "torch.where",
        JAX: "replace what needs the value in Python (if array:, nonzero, boolean indexing) by "
        "jnp.where",
        MINDSPORE: "replace what needs the value in Python (if tensor:, nonzero, boolean indexing) "
        "by mindspore.ops.where",
        MEGENGINE: "replace what needs the value in Python (if tensor:, nonzero, boolean indexing) "
        "by megengine.functional.where",
    },
    "copy-from-pinned": {
        UNKNOWN: "copy batches{} from pinned memory, without waiting for the copy",
        TORCH: "DataLoader(..., pin_memory=True), and .to(device, non_blocking=True){}",
        JAX: "call jax.device_put{} on the next batch before this one is computed",
    },
    "copy-to-host": {
        UNKNOWN: "copy less from the device{}, or without waiting for the copy",
        TORCH: "copy less, or with non_blocking=True into pinned memory{}",
        JAX: "copy less, or begin with .copy_to_host_async(){} and read the values later",
    },
    # -- types
    "use-float32": {
        UNKNOWN: "make the model and its inputs float32{}",
        TORCH: "make the model and its inputs float32{}: x = x.float(), model.float()",
        JAX: 'take away jax.config.update("jax_enable_x64", True) and JAX_ENABLE_X64: all arrays '
        "are float32 then",
        MINDSPORE: "make the model and its inputs float32{}: x.astype(mindspore.float32), "
        "net.to_float(mindspore.float32)",
        MEGENGINE: 'make the model and its inputs float32{}: x.astype("float32")',
    },
    "drop-float64": {
        UNKNOWN: "or make the parameters and the batches float32 where they are made: "
        "x.astype(np.float32)",
        TORCH: "take away .double(), dtype=torch.float64, and "
        "torch.set_default_dtype(torch.float64)",
    },
    "use-bfloat16": {
        UNKNOWN: "multiply in bfloat16: mixed precision for the forward and the loss",
        TORCH: 'with torch.autocast("cuda", dtype=torch.bfloat16): around the forward and the loss',
        JAX: "compute in bfloat16: parameters and batch as x.astype(jnp.bfloat16) in the forward",
        MINDSPORE: 'mindspore.amp.auto_mixed_precision(net, "O2", mindspore.bfloat16)',
        MEGENGINE: "with megengine.amp.autocast(): around the forward and the loss",
    },
    "use-float16": {
        UNKNOWN: "multiply in float16: mixed precision for the forward and the loss, with a scaled "
        "loss",
        TORCH: 'with torch.autocast("cuda", dtype=torch.float16): around the forward and the '
        "loss, and torch.amp.GradScaler around backward and step",
        MINDSPORE: 'mindspore.amp.auto_mixed_precision(net, "O2"), with '
        "mindspore.amp.DynamicLossScaler for the loss",
        MEGENGINE: "with megengine.amp.autocast(): around the forward and the loss, and "
        "megengine.amp.GradScaler for the gradients",
    },
    "use-tf32": {
        UNKNOWN: "let matrix products use TF32",
        TORCH: 'torch.set_float32_matmul_precision("high") once, before training',
        JAX: 'jax.config.update("jax_default_matmul_precision", "tensorfloat32") once, before '
        "training",
    },
    # -- single operators
    "look-rows-up": {
        UNKNOWN: "look the rows up by their index instead",
        TORCH: "look the rows up instead: torch.nn.functional.embedding(index, weight)",
        MINDSPORE: "look the rows up instead: nn.Embedding without use_one_hot",
        JAX: "look the rows up instead: jnp.take(weight, index, axis=0)",
        MEGENGINE: "look the rows up instead: megengine.functional.nn.embedding",
    },
    "mask-instead-of-index": {
        UNKNOWN: "use a mask of a fixed shape",
        TORCH: "use a mask with torch.where, of a fixed shape",
        JAX: "use a mask with jnp.where, of a fixed shape",
        MINDSPORE: "use a mask with mindspore.ops.where, of a fixed shape",
        MEGENGINE: "use a mask with megengine.functional.where, of a fixed shape",
    },
    "gather-updates": {
        UNKNOWN: "gather the updates into one call",
        TORCH: "gather the updates into one call, or use embedding_bag or index_add_",
    },
    "gather-once": {
        UNKNOWN: "gather once, not in pieces",
        TORCH: "gather once, with index_select or embedding, not in pieces",
    },
    "compute-callback": {
        UNKNOWN: "do what is called back inside the program, or before the step, in a thread that "
        "makes batches ahead",
        JAX: "do what is called back with jax.numpy inside the program, or before the step, in a "
        "thread that makes batches ahead",
    },
    "avoid-copies": {
        UNKNOWN: "take copies and changes of layout or type out of the forward{}, or do them once "
        "before the loop",
        TORCH: "take the .contiguous(), .clone(), .reshape() or .to(dtype) out of the forward{}, "
        "or do it once before the loop",
    },
    # -- checkpoints, evaluation
    "save-in-background": {
        UNKNOWN: "save in the background: copy the parameters, and write the copy in a thread",
        TORCH: "save a copy in a thread: state = copy.deepcopy(model.state_dict()); "
        "threading.Thread(target=torch.save, args=(state, path)).start()",
        JAX: "save in the background: orbax.checkpoint.AsyncCheckpointer; or take a copy with "
        "jax.device_get(state) and write it in a thread",
        MINDSPORE: "save in the background: mindspore.save_checkpoint(net, path, "
        "async_save=True), CheckpointConfig(async_save=True)",
    },
    "evaluate-less": {
        UNKNOWN: "evaluate on a part of the data, in larger batches",
        TORCH: "evaluate on a part of the data, in larger batches, under torch.no_grad()",
    },
    # -- memory
    "keep-numbers": {
        UNKNOWN: "keep numbers, not tensors: add the value of the loss to the total, not the loss "
        "itself{}",
        TORCH: "keep numbers, not tensors: total += loss.item() instead of total += loss{}",
        JAX: "keep numbers, not tensors: total += float(loss) instead of total += loss{}",
        MINDSPORE: "keep numbers, not tensors: total += float(loss) instead of total += loss{}",
        MEGENGINE: "keep numbers, not tensors: total += loss.item() instead of total += loss{}",
    },
    "detach-state": {
        UNKNOWN: "Cut the gradient of what is carried from one step to the next{}: the backward "
        "pass runs through all earlier steps",
        TORCH: "Detach what is carried from one step to the next{} (hidden = hidden.detach()), and "
        "leave retain_graph=True out: the backward pass runs through all earlier steps",
        JAX: "Stop the gradient of what is carried from one step to the next{} "
        "(jax.lax.stop_gradient): the backward pass runs through all earlier steps",
        MINDSPORE: "Stop the gradient of what is carried from one step to the next{} "
        "(mindspore.ops.stop_gradient): the backward pass runs through all earlier steps",
    },
    "empty-collections": {
        UNKNOWN: "empty the lists of arrays that you collect when they are used",
        TORCH: "detach what you collect: outputs.append(out.detach()), and empty the list when it "
        "is used",
    },
    # -- starting
    "cache-compiled": {
        UNKNOWN: "keep what was compiled in a cache on disk, so that the next start finds it",
        TORCH: "compile once: set TORCHINDUCTOR_CACHE_DIR to a folder that stays, so that the next "
        "start finds what this one compiled",
        JAX: 'compile once: jax.config.update("jax_compilation_cache_dir", a folder that stays), '
        "so that the next start finds what this one compiled",
        MINDSPORE: "MS_COMPILER_CACHE_ENABLE=1 before the command: the next start finds what was "
        "compiled",
    },
    "compile-less": {
        UNKNOWN: "compile fewer and smaller parts",
        TORCH: "compile fewer and smaller regions, with dynamic=True where shapes change",
        JAX: "compile less: jax.lax.scan over layers that are alike instead of a loop in Python",
        MINDSPORE: "compile less: @lazy_inline for blocks of layers that are alike",
    },
    "skip-compiler": {
        UNKNOWN: "leave the compiler out of runs as short as this one",
        TORCH: "leave torch.compile out of runs as short as this one",
    },
    "keep-workers": {
        UNKNOWN: "keep the data workers between epochs, and use fewer of them",
        TORCH: "DataLoader(..., persistent_workers=True), with fewer workers",
    },
    # -- data
    "loader": {
        UNKNOWN: "a data loader with workers",
        TORCH: "torch.utils.data.DataLoader(..., num_workers=2)",
        JAX: "grain.DataLoader(..., worker_count=2)",
        MINDSPORE: "mindspore.dataset.GeneratorDataset(..., num_parallel_workers=2)",
        MEGENGINE: "megengine.data.DataLoader(..., num_workers=2)",
    },
}


def fix(name: str, framework: str, *words: str) -> str:
    """A fix in the framework's own words, or else in neutral ones; `words` go into its gaps."""
    by_framework = _FIXES[name]
    text = by_framework.get(framework, by_framework[UNKNOWN])
    for word in words:
        text = text.replace(GAP, word, 1)
    return text


def is_fix(name: str) -> bool:
    return name in _FIXES
