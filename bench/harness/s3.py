"""A local S3 server (versitygw) with the files of a workload in it, and URLs signed for `curl`.

Enters: files and the keys they get. Leaves: a running server on loopback, presigned URLs, and the environment that
points S3 clients at it. The signature is AWS Signature Version 4 with the query parameters of a presigned URL, as
the S3 API reference describes it.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from .server import free_port

ACCESS_KEY = "bench"
SECRET_KEY = "bench-secret"
REGION = "us-east-1"
URL_LIFETIME_S = 86_400
START_TIMEOUT_S = 10.0


def find_versitygw(root: Path) -> Path:
    """The server's binary: that of the tests, or the one named by the environment."""
    path = Path(os.environ.get("HOWDAH_TEST_VERSITYGW", root / "target/servers/bin/versitygw"))
    if not path.exists():
        raise FileNotFoundError(f"no versitygw at {path}: run `cargo xtask servers`")
    return path


class S3Server:
    """versitygw over an empty folder; `with S3Server(...)` stops it and removes the folder."""

    def __init__(self, binary: Path, work: Path) -> None:
        self.binary = binary
        self.folder = work / f"s3-{os.getpid()}"
        self.host = f"127.0.0.1:{free_port()}"

    def __enter__(self) -> S3Server:
        self.folder.mkdir(parents=True)
        credentials = {"ROOT_ACCESS_KEY_ID": ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": SECRET_KEY}
        self.process = subprocess.Popen(
            [str(self.binary), "--quiet", "--port", self.host, "posix", str(self.folder)],
            env={**os.environ, **credentials},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_until_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    @property
    def env(self) -> dict[str, str]:
        """What S3 clients read to find the server."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_S3": f"http://{self.host}",
            "AWS_ALLOW_HTTP": "true",
        }

    def create_bucket(self, bucket: str) -> None:
        """Makes a bucket."""
        self._put(self.presign("PUT", f"/{bucket}"), io.BytesIO(), 0)

    def upload(self, bucket: str, key: str, path: Path) -> None:
        """Stores a file in one request, streamed: the harness's own size is the floor of every peak it measures."""
        with path.open("rb") as file:
            self._put(self.presign("PUT", f"/{bucket}/{key}"), file, path.stat().st_size)

    def presign(self, method: str, path: str) -> str:
        """A URL that lets anybody do `method` on `path` for a day."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        query = urllib.parse.urlencode(
            {
                "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
                "X-Amz-Credential": f"{ACCESS_KEY}/{scope}",
                "X-Amz-Date": now,
                "X-Amz-Expires": URL_LIFETIME_S,
                "X-Amz-SignedHeaders": "host",
            },
            quote_via=urllib.parse.quote,
            safe="",
        )
        path = urllib.parse.quote(path)
        request = f"{method}\n{path}\n{query}\nhost:{self.host}\n\nhost\nUNSIGNED-PAYLOAD"
        to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{SECRET_KEY}".encode()
        for word in scope.split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        return f"http://{self.host}{path}?{query}&X-Amz-Signature={signature}"

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                urllib.request.urlopen(self.presign("GET", "/"), timeout=1).close()
                return
            except (OSError, urllib.error.URLError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.binary} does not answer on {self.host}") from None
                time.sleep(0.05)

    @staticmethod
    def _put(url: str, body: IO[bytes], size_bytes: int) -> None:
        headers = {"Content-Length": str(size_bytes)}
        request = urllib.request.Request(url, data=body, headers=headers, method="PUT")
        urllib.request.urlopen(request, timeout=120).close()
