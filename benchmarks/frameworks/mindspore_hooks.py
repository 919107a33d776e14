"""What light recording costs three MindSpore loops, by clocks around its hooks.

    PYTHON -m benchmarks.frameworks.mindspore_hooks [--repeat N]

PYTHON has MindSpore and Strobe.
"""

import functools

from benchmarks.frameworks.hooks import STEPS, Hooks, Stopwatch, clock, main

WAYS = {
    "model": "Model.train with graphs",
    "pynative": "a functional loop without graphs",
    "jit": "a loop over a compiled function",
}
BATCH, WIDTH = 64, {"model": 768, "pynative": 64, "jit": 768}


def clock_hooks(way: str, is_recorded: bool) -> None:
    clock(_around, functools.partial(train, way), is_recorded)


def _around(hooks: Hooks, sign: int) -> None:
    for owner, name in _places():
        setattr(owner, name, hooks.clocked(getattr(owner, name), sign))


def train(way: str, watch: Stopwatch) -> None:
    import mindspore as ms
    from mindspore import nn
    from mindspore.train import Model

    ms.set_seed(0)
    ms.set_context(mode=ms.PYNATIVE_MODE if way == "pynative" else ms.GRAPH_MODE)
    width = WIDTH[way]
    layers = (nn.Dense(256, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU())
    net = nn.SequentialCell(*layers, nn.Dense(width, 10))
    loss_fn, optimizer = nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.01, 0.9)
    if way == "model":
        model = Model(net, loss_fn, optimizer)
        model.train(1, _data(), callbacks=[_callback(watch)], dataset_sink_mode=False)
        return
    step = _functional(net, loss_fn, optimizer)
    step = ms.jit(step) if way == "jit" else step
    for x, y in _data().create_tuple_iterator(num_epochs=1):
        float(step(x, y).asnumpy())
        watch.step()


def _callback(watch: Stopwatch):
    from mindspore.train import Callback

    class Watched(Callback):
        def on_train_step_end(self, run_context):
            float(run_context.original_args().net_outputs.asnumpy())
            watch.step()

    return Watched()


def _functional(net, loss_fn, optimizer):
    import mindspore as ms

    def loss_of(x, y):
        return loss_fn(net(x), y)

    gradients_of = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradients_of(x, y)
        optimizer(gradients)
        return loss

    return step


def _places() -> list[tuple[object, str]]:
    from mindspore import Tensor, nn
    from mindspore.dataset.engine.iterators import Iterator

    from strobe.collect.mindspore import versions

    api = versions.executors()
    return [
        (nn.Cell, "__call__"), (api._JitExecutor, "__call__"), (api._PyNativeExecutor, "grad"),
        *((home, "_pynative_forward_run") for home in versions.forward_homes()),
        (Iterator, "__next__"), (Tensor, "asnumpy"),
    ]  # fmt: skip


def _data():
    import mindspore.dataset as ds
    import numpy as np

    rng = np.random.RandomState(0)
    items = [(rng.randn(256).astype(np.float32), np.array(i % 10, np.int32)) for i in range(512)]
    items *= STEPS * BATCH // len(items)
    return ds.GeneratorDataset(items, ["x", "y"], shuffle=False).batch(BATCH)


if __name__ == "__main__":
    main("benchmarks.frameworks.mindspore_hooks", __doc__, WAYS)
