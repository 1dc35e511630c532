"""Print the lowest version that is declared of each library of the core, as constraints for pip."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
for requirement in project["dependencies"]:
    name, mark, version = requirement.partition(">=")
    if not mark:
        sys.exit(f"pyproject.toml: {requirement!r} names no lowest version; write it as name>=version")
    sys.stdout.write(f"{name}=={version}\n")
