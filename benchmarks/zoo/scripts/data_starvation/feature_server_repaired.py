"""Sequence model on features that a server on this host hands out one by one."""

import multiprocessing
import socketserver
import struct
import time
import urllib.request
from http.server import BaseHTTPRequestHandler

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 7
LENGTH, WIDTH = 24, 64


class Features(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.004)  # the lookup behind the server
        number = int(self.path.rpartition("/")[2])
        values = np.random.default_rng(number).standard_normal((LENGTH, WIDTH), dtype=np.float32)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(struct.pack("<q", number % 5) + values.tobytes())

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    request_queue_size = 64


def serve(port):
    server = Server(("127.0.0.1", 0), Features)
    port.value = server.server_address[1]
    server.serve_forever()


class RemoteFeatures(Dataset):
    def __init__(self, port, size):
        self.url = f"http://127.0.0.1:{port}/features"
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        with urllib.request.urlopen(f"{self.url}/{i}") as answer:
            body = answer.read()
        (label,) = struct.unpack_from("<q", body)
        x = np.frombuffer(body, dtype=np.float32, offset=8).reshape(LENGTH, WIDTH)
        return torch.tensor(x), label


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, 192, num_layers=2, batch_first=True)
        self.head = nn.Linear(192, 5)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


def train(port):
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    data = RemoteFeatures(port, size=8 * 70)
    loader = DataLoader(data, batch_size=8, num_workers=3)
    net = Tagger()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    port = multiprocessing.Value("i", 0)
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    while not port.value:
        time.sleep(0.05)
    train(port.value)
    server.terminate()
