"""The types: a strict program type-checks, wrong calls do not, and the stubs tell the truth."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import howdah

HERE = Path(__file__).parent


def mypy(*arguments: object) -> str:
    """Run mypy and return what it says."""
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=HERE).stdout


def test_a_strict_program_type_checks() -> None:
    assert mypy("mypy", "--strict", "typed_program.py").startswith("Success")


def test_wrong_calls_do_not_type_check(tmp_path: Path) -> None:
    """Each line is one mistake, and mypy has to name every line."""
    lines = [
        'howdah.load("a", "t", delimeter=";")',
        'howdah.load("a", "t", ";")',
        'howdah.load("a", "t", header="maybe")',
        'howdah.load("a", "t", on_event=lambda: None)',
        'howdah.load("a", "t").rows_stored = 1',
        'howdah.resume("j", chunk_size=1)',
        'howdah.plan("a", "t")["no_such_key"]',
    ]
    program = tmp_path / "wrong.py"
    program.write_text("import howdah\n" + "\n".join(lines) + "\n")
    told = mypy("mypy", "--strict", program)
    named = {int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line}
    assert named == set(range(2, 2 + len(lines))), told


def test_the_stubs_agree_with_the_extension_module() -> None:
    told = mypy("mypy.stubtest", "howdah", "--allowlist", HERE / "stubtest_allowlist.txt")
    assert told.startswith("Success"), told


def test_every_argument_that_is_taken_is_in_the_signatures() -> None:
    """The stubs are compared with the signatures that editors show; these with what is taken in Rust."""
    options = (HERE.parent / "src" / "options.rs").read_text()
    taken = set(re.findall(r'(?:take|take_given|number)(?:::<.*?>)?\(\s*"(\w+)"', options))
    load, plan = (set(inspect.signature(verb).parameters) for verb in (howdah.load, howdah.plan))
    assert load - {"sources", "table", "on_event"} == taken
    assert load - {"on_event"} == plan


def test_the_verbs_have_the_arguments_of_load() -> None:
    """PyO3 takes a signature as a literal, so that it stands once for each verb: the three must not drift apart."""
    load, plan, check = (
        list(inspect.signature(verb).parameters.values()) for verb in (howdah.load, howdah.plan, howdah.check)
    )
    assert plan == [parameter for parameter in load if parameter.name != "on_event"]
    checked = {parameter.name for parameter in check}
    assert check == [parameter for parameter in load if parameter.name in checked]
    of_stored_rows = {"verify", "after", "job_id", "known", "if_done", "sequences", "tune", "freeze", "force"}
    of_loads_alone = {"indexes", "triggers", "on_error"}
    assert {parameter.name for parameter in load} - checked == of_stored_rows | of_loads_alone
