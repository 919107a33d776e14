"""A training on a data loader of any style, told by JSON; prints a checksum of its weights."""

import json
import sys
import time

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

torch.manual_seed(0)
torch.set_num_threads(1)
options = json.loads(sys.argv[1])
style = options.pop("style", "map")
epochs = options.pop("epochs", 2)
sleep_s, spin_s, collate_s = (options.pop(name, 0.0) for name in ("sleep", "spin", "collate"))
method = options.pop("method", None)


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Items(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        if sleep_s:
            time.sleep(sleep_s)
        spin(spin_s)
        return torch.full((4,), float(index)) + torch.rand(4), torch.ones(1)


class Stream(IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for index in range(info.id if info else 0, 48, info.num_workers if info else 1):
            yield Items()[index]


class Fails(Items):
    def __getitem__(self, index):
        if index == 20:
            raise LookupError("no such item")
        return super().__getitem__(index)


def collate(items):
    spin(collate_s)
    return torch.utils.data.default_collate(items)


def loader() -> DataLoader:
    dataset = {"iterable": Stream, "fails": Fails}.get(style, Items)()
    if style == "batch_sampler":
        batches = BatchSampler(SequentialSampler(dataset), 8, drop_last=False)
        return DataLoader(dataset, batch_sampler=batches, collate_fn=collate, **options)
    if method:
        options["multiprocessing_context"] = method
    return DataLoader(dataset, batch_size=8, collate_fn=collate, **options)


def main() -> None:
    data = loader()
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad()
            (net(x) - y).square().mean().backward()
            optimizer.step()
    print(net.weight.detach().numpy().tobytes().hex())


if __name__ == "__main__":
    main()
