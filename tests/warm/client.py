"""Stands for a Python process that a fork of the server runs: `client.py SOCKET SCRIPT ARGUMENTS`.

It hands over its arguments, environment, folder and streams, and ends as the fork does.
"""

import json
import os
import signal
import socket
import sys


def main(address: str, words: list[str]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(address)
        request = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
        message = json.dumps(request).encode()
        socket.send_fds(server, [len(message).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(message)
        answer = server.recv(8)
    status = int(answer) if answer else 1
    if status < 0:  # ended by this signal
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main(sys.argv[1], sys.argv[2:])
