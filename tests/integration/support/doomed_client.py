# SPDX-License-Identifier: Apache-2.0
"""A client that is killed: it connects, sends all or half of what a file holds, prints a line, and
goes on until it is killed. It imports little, to start quickly.

usage: doomed_client.py FAMILY ADDRESS HOW FILE     FAMILY unix | inet (a port of 127.0.0.1)
       HOW  waiting: sends all of it, then reads slowly;  sending: half, then bit by bit"""

import socket
import sys
import time

PIECE_BYTES = 512
PAUSE_S = 0.01


def connect(family: str, address: str) -> socket.socket:
    if family == "inet":
        return socket.create_connection(("127.0.0.1", int(address)))
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(address)
    return peer


def main() -> None:
    family, address, how, path = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read()
    peer = connect(family, address)
    n_first = len(data) if how == "waiting" else len(data) // 2
    peer.sendall(data[:n_first])
    print("sent", flush=True)
    for at in range(n_first, len(data), PIECE_BYTES):
        peer.sendall(data[at : at + PIECE_BYTES])
        time.sleep(PAUSE_S)
    while peer.recv(64):
        time.sleep(PAUSE_S)
    time.sleep(600)


if __name__ == "__main__":
    main()
