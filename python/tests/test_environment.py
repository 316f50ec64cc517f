"""The environment may change while howdah is at work."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def test_threads_may_change_the_environment_meanwhile() -> None:
    """To read it beside that is a segmentation fault, within a second or two."""
    program = """
        import os, random, threading, time, howdah
        stopped = threading.Event()
        def change():
            while not stopped.is_set():
                os.environ[f"X_{random.randint(0, 4999)}"] = "x" * random.randint(1, 200)
                os.environ.pop(f"X_{random.randint(0, 4999)}", None)
        def plan():
            while time.monotonic() - began < 3:
                try:
                    howdah.plan("nowhere.csv", "t", to="host=127.0.0.1 port=1", retry_for=0)
                except howdah.Error:
                    pass
        began = time.monotonic()
        changing = [threading.Thread(target=change) for _ in range(2)]
        planning = [threading.Thread(target=plan) for _ in range(3)]
        for thread in changing + planning:
            thread.start()
        for thread in planning:
            thread.join()
        stopped.set()
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
