import tempfile

import mindspore as ms
from common import RATE, RECORDED, SIZES, Stopwatch, batches, uses_own_profiler, weights
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
layers = [
    nn.Dense(rows, columns, weight_init=ms.Tensor(start.T.copy()), bias_init="zeros")
    for rows, columns, start in zip(SIZES[:-1], SIZES[1:], weights(), strict=True)
]
model = nn.SequentialCell(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
optimizer = nn.SGD(model.trainable_params(), learning_rate=RATE)
criterion = nn.CrossEntropyLoss()


def loss_of(x, y):
    return criterion(model(x), y)


gradients_of = ms.value_and_grad(loss_of, None, optimizer.parameters)
profiler = None

watch = Stopwatch()
for step, (x, y) in enumerate(batches(), 1):
    if uses_own_profiler() and step == RECORDED.start:
        profiler = ms.profiler.profile(
            on_trace_ready=ms.profiler.tensorboard_trace_handler(tempfile.mkdtemp())
        )
        profiler.start()
    loss, gradients = gradients_of(ms.Tensor(x), ms.Tensor(y))
    optimizer(gradients)
    watch.step(loss.asnumpy())
    if uses_own_profiler() and step == RECORDED.stop - 1:
        profiler.stop()
watch.write()
