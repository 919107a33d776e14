import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, IterableDataset, Sampler  # noqa: E402

from strobe.collect.torch.data_settings import settings_of  # noqa: E402


class Backwards(Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count)[::-1])

    def __len__(self):
        raise AssertionError("nobody asked the user's code before")


class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.zeros(1)])

    def __len__(self):
        raise AssertionError("torch takes note of whoever asks")


def test_functions_and_objects_are_told_by_name():
    told = settings_of(DataLoader(torch.zeros(6, 2), sampler=Backwards(6), collate_fn=torch.stack))
    assert (told["sampler"], told["collate_fn"]) == ("Backwards", "stack")
    assert (told["dataset"], told["items"]) == ("Tensor", None)
    assert told["cores"] >= 1


def test_an_iterable_is_not_counted():
    told = settings_of(DataLoader(Stream(), batch_size=4, num_workers=2))
    assert (told["is_iterable"], told["items"], told["prefetch_factor"]) == (True, None, 2)
    assert told["start_method"] in ("fork", "forkserver", "spawn")


def test_the_size_of_batches_comes_from_whoever_makes_them():
    sampler = torch.utils.data.BatchSampler(range(6), 3, drop_last=False)
    assert settings_of(DataLoader(torch.zeros(6, 2), batch_sampler=sampler))["batch_size"] == 3
    assert settings_of(DataLoader(torch.zeros(6, 2), batch_size=None))["batch_size"] is None
