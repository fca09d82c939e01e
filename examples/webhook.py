"""Run me: `python examples/webhook.py`. A webhook is delivered to a receiver that is down at first.

The receiver answers 503 to the first try, so the job is tried again. It checks the signature, and knows the
second try for the same message by its id. Both ends are here, on this machine. It needs the extra `http`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from mainspring import Mainspring, Retry
from mainspring.process.serve import serve

SECRET = "whsec_" + base64.b64encode(b"thirty-two bytes, kept secret...").decode()


class Receiver(BaseHTTPRequestHandler):
    """What your customer would run."""

    tries = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.tries += 1
        status = 401 if not self.is_signed(body) else 503 if Receiver.tries == 1 else 200
        print(f"try {Receiver.tries} of {self.headers['webhook-id'][:8]}: {body.decode()} -> {status}")
        self.send_response(status)
        self.end_headers()

    def is_signed(self, body: bytes) -> bool:
        """As the Standard Webhooks say."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return hmac.compare_digest(self.headers["webhook-signature"], f"v1,{expected}")

    def log_message(self, format: str, *args: object) -> None:
        """It prints enough as it is."""


async def deliver(folder: str, port: int) -> None:
    """Put one job in, and work until it is done."""
    async with Mainspring(f"sqlite:///{folder}/webhook.db") as app:
        notify = app.http(
            "notify",
            f"http://127.0.0.1:{port}/hook",
            secret=SECRET,
            retry=Retry(attempts=5, base="10ms"),
            # The guard would refuse this machine's own addresses.
            allow_private=["127.0.0.0/8"],
            ports=[port],
        )
        job = await notify.aenqueue(event="paid", order=42)
        store = await app.store()
        while True:
            await serve(app, scheduler=False, burst=True)
            found = await store.jobs.get(job.id, at=None)
            if found is not None and found.state not in ("ready", "delayed"):
                break
            await asyncio.sleep(0.01)  # noqa: TID251 - an example, not the engine
        print(f"{job}: {found.state if found else 'lost'}")


def main() -> None:
    """Receive in a thread, deliver in this one."""
    with HTTPServer(("127.0.0.1", 0), Receiver) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            asyncio.run(deliver(folder, server.server_port))
        finally:
            server.shutdown()


if __name__ == "__main__":
    main()
