"""What users write; read by mypy only."""

from __future__ import annotations

from pathlib import Path

import howdah


def show(event: howdah.Event) -> None:
    """Tell events apart by their type."""
    if event["type"] == "planned":
        print(event["plan"]["files"][0]["location"].upper())
    elif event["type"] == "stored":
        print(event["rows"] + event["bytes"], event["before"] is True)
    elif event["type"] == "retry":
        print(event["reason"].strip(), event["delay"] / 1000)


def load(folder: Path) -> int:
    """Call every verb in every way."""
    try:
        summary = howdah.load(folder / "*.csv", "t", header="match", jobs=4, memory="1GB", ledger=None)
    except howdah.DataError as error:
        print(error.file, error.record, error.kind == "record")
        return error.summary.rows_stored if error.summary else 0
    except (FileNotFoundError, ConnectionError):
        return 0
    howdah.load([folder, "s3://bucket/prefix"], "t", header=True, force_null="*", on_event=show)
    howdah.load({"a.csv": "a", "b.csv": "b"}, map={"x": "y"}, columns=["a"], on_event=print)
    plan = howdah.plan("a.csv", "t", to="service=warehouse")
    print(plan["tables"][0]["copy_sql"].lower(), plan["chunk_bytes"] + 1)
    for job in howdah.status(to="service=warehouse"):
        if job["status"] == "failed":
            howdah.resume(job["job_id"], on_event=show)
    server = howdah.pg.status()
    print(howdah.pg.start() + howdah.pg.url(), howdah.pg.stop() is True, server["pid"], howdah.__version__)
    print([step["reason"] for step in summary.sessions_trace if step["settled"]])
    document: dict[str, object] = summary.to_dict()
    return summary.files[0].rows_read + int(summary.stages["copy"]) + len(document)
