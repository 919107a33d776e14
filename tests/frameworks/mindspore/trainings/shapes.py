"""The same little training in every shape that MindSpore scripts have.

Prints the loss of each step bit for bit, and at the end how many steps there were.
"""

import argparse
import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Callback, Model


class Net(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Dense(32, width)
        self.relu = nn.ReLU()
        self.second = nn.Dense(width, 10)

    def construct(self, x):
        return self.second(self.relu(self.first(x)))


class Losses(Callback):
    def on_train_step_end(self, run_context):
        tell(run_context.original_args().net_outputs)


def tell(loss):
    print("loss", float(loss.asnumpy()).hex(), flush=True)


def batches(args):
    rng = np.random.RandomState(0)
    items = [
        (rng.randn(32).astype(np.float32), np.array(i % 10, np.int32))
        for i in range(args.steps * args.batch)
    ]

    def prepare(x):
        if args.delay:
            time.sleep(args.delay)
        until = time.thread_time() + args.compute
        while time.thread_time() < until:
            pass
        return (x * 0.5).astype(np.float32)

    data = ds.GeneratorDataset(items, ["x", "y"], shuffle=False, num_parallel_workers=1)
    data = data.map(prepare, input_columns="x", num_parallel_workers=1)
    return data.batch(args.batch, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("loop", choices=["model", "cell", "functional", "jit"])
    parser.add_argument("--mode", choices=["graph", "pynative"], default="graph")
    parser.add_argument("--sink", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20, help="of an epoch")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--compute", type=float, default=0, help="seconds, for each item")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds of sleep for an item")
    args = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    train(args)
    print("steps", args.epochs * args.steps)


def train(args):
    net = Net(args.width)
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    if args.loop == "model":
        model = Model(net, loss_fn, optimizer, metrics={"accuracy"})
        if args.evaluate:
            model.fit(args.epochs, batches(args), batches(args), callbacks=[Losses()],
                      dataset_sink_mode=args.sink, valid_dataset_sink_mode=args.sink)  # fmt: skip
        else:
            model.train(args.epochs, batches(args), callbacks=[Losses()],
                        dataset_sink_mode=args.sink)  # fmt: skip
        return
    step = {"cell": by_cell, "functional": by_function, "jit": by_jit}[args.loop](
        net, loss_fn, optimizer
    )
    data = batches(args)
    for _ in range(args.epochs):
        for x, y in data.create_tuple_iterator(num_epochs=1):
            tell(step(x, y))
        if args.evaluate:
            for x, _y in batches(args).create_tuple_iterator(num_epochs=1):
                net(x)


def by_cell(net, loss_fn, optimizer):
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), optimizer)
    cell.set_train()
    return cell


def by_function(net, loss_fn, optimizer):
    def forward(x, y):
        return loss_fn(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


def by_jit(net, loss_fn, optimizer):
    return ms.jit(by_function(net, loss_fn, optimizer))


if __name__ == "__main__":
    main()
