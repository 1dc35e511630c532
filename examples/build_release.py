"""From stories to a release in Python, offline: build, validate, pack, load.

    python examples/build_release.py my-stories.jsonl out/

Without arguments it takes the sample stories that come with Fabula and a temporary folder.
"""

import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import fabula


def main(stories: Path, out: Path) -> None:
    """Build a run from the stories, pack it, and print what a model author would draw."""
    report = fabula.build("stories", stories, out / "run")
    print(f"built: {report.totals}")
    findings = fabula.validate(out / "run")
    print(findings.summary())
    options = fabula.PackOptions(version="0.1.0", name="my-stories", license="CC-BY-4.0", allow_drafts=True)
    fabula.pack(out / "run", out / "release", options)
    release = fabula.load(out / "release")
    record = release.records[0]
    print(f"{record.title}: {len(release.records)} public records, version {release.version}")
    for scene in record.scenes:
        print(f"  scene {scene.scene_index}: {', '.join(scene.characters)} | {scene.action}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with (
            as_file(files("fabula.builders.katha") / "samples" / "stories.jsonl") as samples,
            tempfile.TemporaryDirectory() as folder,
        ):
            main(samples, Path(folder))
