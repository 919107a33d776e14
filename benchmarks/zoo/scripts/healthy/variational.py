"""A variational autoencoder with a scheduler and a checkpoint at the end of each epoch."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, inputs=784, hidden=1024, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, inputs)
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


def objective(logits, x, mean, log_variance):
    rebuilt = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    return (rebuilt + divergence) / len(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        TensorDataset(torch.rand(128 * 30, 784)), batch_size=args.batch_size, shuffle=True
    )
    model = VAE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for epoch in range(args.epochs):
        for (x,) in loader:
            optimizer.zero_grad()
            logits, mean, log_variance = model(x)
            loss = objective(logits, x, mean, log_variance)
            loss.backward()
            optimizer.step()
        scheduler.step()
        torch.save(model.state_dict(), "vae.pt")
        print(f"epoch {epoch}: {loss.item():.2f}")


if __name__ == "__main__":
    main()
