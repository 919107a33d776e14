"""Sentiment of reviews with a transformer; every batch is padded to its longest text."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Reviews(torch.utils.data.Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        lengths = torch.randint(20, 90, (count,), generator=generator)
        self.texts = [torch.randint(1, 5000, (n,), generator=generator) for n in lengths.tolist()]
        self.labels = torch.randint(0, 2, (count,), generator=generator)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


def collate(samples):
    texts, labels = zip(*samples, strict=True)
    padded = torch.zeros(len(texts), max(map(len, texts)), dtype=torch.long)
    for row, text in enumerate(texts):
        padded[row, : len(text)] = text
    return padded, torch.stack(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 128, padding_idx=0)
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, 2)

    def forward(self, tokens):
        padding = tokens == 0
        states = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        states = states.masked_fill(padding[..., None], 0)
        return self.head(states.sum(1) / (~padding).sum(1, keepdim=True))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Reviews(960), batch_size=16, shuffle=True, collate_fn=collate)
    net = Classifier()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(tokens), labels)
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
