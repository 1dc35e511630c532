"""fabula run archive, restore and compact: a finished run as one file and back; what is lost is said."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def test_archive_when_run_is_finished_comes_back_and_goes_on(
    fabula_command: Command, sample_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    records = (run / "records.jsonl").read_bytes()
    compacted = json.loads(fabula_command("run", "compact", run, "--json").stdout)
    assert compacted["dropped"] == 0 and "all kept" in compacted["lost"][0]
    done = fabula_command("run", "archive", run, "--remove")
    assert done.returncode == 0 and "not kept: times and owners" in done.stdout
    assert not run.exists() and "fabula run restore" in done.stdout
    archive = run.with_name(f"{run.name}.tar.zst")
    restored = json.loads(fabula_command("run", "restore", archive, "--json").stdout)
    assert restored["folder"] == str(run) and len(restored["lost"]) == 2
    assert (run / "records.jsonl").read_bytes() == records
    assert fabula_command("run", "check", run).returncode == 0
    taken = fabula_command("run", "restore", archive)
    assert taken.returncode == 2 and "there already" in taken.stderr
    for wrong in (tmp_path / "none.tar.zst", run / "records.jsonl"):
        refused = fabula_command("run", "restore", wrong, "--out", tmp_path / "out")
        assert refused.returncode in (1, 2) and "Traceback" not in refused.stderr
        assert str(wrong) in refused.stderr
        assert not (tmp_path / "out").exists()
