r"""Learn from a socket: lines of CSV come in, the target last; predictions go out.

    python examples/serve/learn_from_socket.py 9000 http://127.0.0.1:8000
    printf '5.1,3.5,setosa\n6.2,2.9,virginica\n5.0,3.4,\n' | nc -N 127.0.0.1 9000

A line with a target is predicted and then learned; one without (``5.0,3.4,``) is predicted.
"""

import socketserver
import sys

from boundary_forest import Client


class Lines(socketserver.StreamRequestHandler):
    """A connection: one line of CSV in, one prediction out."""

    def handle(self) -> None:
        """Answer until the other side closes."""
        for line in self.rfile:
            *values, target = line.decode().strip().split(",")
            row = [[float(value) for value in values]]
            if target:
                found = client.predict_then_learn(row, [target]).predictions
            else:
                found = client.predict(row)
            self.wfile.write(f"{found.values[0]}\n".encode())


if __name__ == "__main__":
    port, address = int(sys.argv[1]), sys.argv[2]
    with (
        Client(address) as client,
        socketserver.ThreadingTCPServer(("127.0.0.1", port), Lines) as s,
    ):
        s.serve_forever()
