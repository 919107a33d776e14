"""A generative adversarial network of convolutions; both networks are trained in every step."""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Linear(64, 128 * 8 * 8)
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(128, 96, 4, 2, 1), nn.BatchNorm2d(96), nn.ReLU(),
            nn.ConvTranspose2d(96, 48, 4, 2, 1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.Conv2d(48, 3, 3, padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise):
        return self.layers(self.start(noise).view(-1, 128, 8, 8))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1),
            nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 8 * 8, 1),
        )  # fmt: skip

    def forward(self, pictures):
        return self.layers(pictures)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator, discriminator = Generator(), Discriminator()
    g_optimizer = torch.optim.SGD(generator.parameters(), lr=1e-3)
    d_optimizer = torch.optim.SGD(discriminator.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    pictures = torch.rand(1280, 3, 32, 32) * 2 - 1
    for real in pictures.split(16):
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = generator(torch.randn(len(real), 64))

        d_optimizer.zero_grad()
        d_loss = criterion(discriminator(real), ones) + criterion(
            discriminator(fake.detach()), zeros
        )
        d_loss.backward()
        d_optimizer.step()

        g_optimizer.zero_grad()
        g_loss = criterion(discriminator(fake), ones)
        g_loss.backward()
        g_optimizer.step()
    print(f"D {d_loss.item():.3f} G {g_loss.item():.3f}")


if __name__ == "__main__":
    main()
