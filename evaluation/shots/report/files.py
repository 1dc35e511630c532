"""Where the pictures behind an evaluation of shot images are: found by place, known by their hash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....errors import ConfigError, InputError, UserError
from ....releases.shots.references import IMAGES
from ....releases.shots.tree import FOLDER
from ....schemas.canonical import sha256_file
from ....schemas.judgement import EvaluationManifest
from ....schemas.plain_files import composed
from ...archive.archive import sources_of
from ...metrics.story import FoundStory
from ...outputs.shot_folders import Choice, find_root, shot_number, story_folders
from ...report.pictures import kept_picture
from ..load_stories import OUTPUTS, SHOTS
from ..references import generated_references

MOST_BYTES = 64_000_000
_MOST_FILES = 400


@dataclass
class ShotFiles:
    """Finds pictures of shots and references; gives a file only if it is the one that was evaluated."""

    folder: Path  # the evaluation folder
    roots: Mapping[str, Path]  # method -> folder of its outputs
    release: Path | None  # the set of scripts; None where it is not at hand
    choice: Choice  # which mode, language and time stamp of outputs
    first: int = 1  # number of the first shot in file names
    own_references: bool = False  # whether references were those that methods drew
    changed: set[str] = field(default_factory=set)  # files that are there and are not what was evaluated
    _listed: dict[str, dict[int, list[Path]]] = field(default_factory=dict, repr=False)
    _hashed: dict[Path, dict[str, Path]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, folder: Path, manifest: EvaluationManifest, release: Path | None, outputs: Sequence[Path]
    ) -> "ShotFiles":
        """Return what finds the pictures of an evaluation.

        ``release``: the set of scripts; None for the place that the evaluation names.
        """
        environment = manifest.environment
        selection = _mapping(environment.get("selection"))
        known = sources_of(folder, manifest)
        roots = {composed(path.name): path for role, path in known if role == OUTPUTS}
        roots |= _given(outputs, _mapping(manifest.subject.get("methods")))
        if release is None:
            release = next((path for role, path in known if role == SHOTS), None)
        choice = Choice(*(_text(selection.get(name)) for name in ("mode", "language", "timestamp")))
        own = manifest.protocol.get("references") == "generated"
        return cls(folder, roots, release, choice, 0 if selection.get("first_shot") == 0 else 1, own)

    def shot(self, method: str, story_id: str, number: int, sha256: str | None) -> Path | None:
        """Return the picture of a shot; None where it is not at hand."""
        if sha256 is None:
            return None
        files = self._of_method(method).get(_number(story_id), [])
        for file in files:
            said = shot_number(file)
            if said is not None and said + 1 - self.first == number:
                if _sha256(file) == sha256:
                    return file
                self.changed.add(f"{method}/{story_id}/{file.name}")
        return None

    def view(self, file: object) -> Path | None:
        """Return a picture that judging kept in the run folder."""
        return kept_picture(self.folder, file)

    def reference(self, story: FoundStory, sha256: str) -> Path | None:
        """Return a reference image of a story by its hash; None where it is not at hand."""
        if self.own_references:
            return self._drawn(story).get(sha256)
        folder = self.story_folder(story.story_id)
        return None if folder is None else self._by_hash(folder / IMAGES).get(sha256)

    def story_folder(self, story_id: str) -> Path | None:
        """Return the folder of a story's script and references; None where it is not at hand."""
        if self.release is None or not story_id.isdigit():
            return None
        root = self.release / FOLDER if (self.release / FOLDER).is_dir() else self.release
        return root / story_id if (root / story_id).is_dir() else None

    def _of_method(self, method: str) -> dict[int, list[Path]]:
        if method not in self._listed:
            listed: dict[int, list[Path]] = {}
            if method in self.roots:
                try:
                    for folder in story_folders(find_root(self.roots[method], self.choice), self.choice):
                        listed.setdefault(int(folder.story_id), []).extend(folder.files)
                except (InputError, ConfigError, OSError):
                    listed = {}  # the page says where a picture is not at hand
            self._listed[method] = listed
        return self._listed[method]

    def _drawn(self, story: FoundStory) -> dict[str, Path]:
        root = self.roots.get(story.method)
        if root is None:
            return {}
        key = root / story.story_id / "characters"
        if key not in self._hashed:
            try:
                drawn = generated_references(find_root(root, self.choice), self.choice)
                files = [file for some in drawn.get(_number(story.story_id), {}).values() for file in some]
            except (InputError, ConfigError, OSError):
                files = []
            self._hashed[key] = _hashes(files)
        return self._hashed[key]

    def _by_hash(self, folder: Path) -> dict[str, Path]:
        if folder not in self._hashed:
            files = sorted(folder.rglob("*")) if folder.is_dir() else []
            self._hashed[folder] = _hashes(files)
        return self._hashed[folder]


def _given(outputs: Sequence[Path], methods: Mapping[str, Any]) -> dict[str, Path]:
    given = {composed(path.resolve().name): path for path in outputs}
    problems = [
        UserError(
            str(path), what=f"{name} is none of the methods that were evaluated: {', '.join(methods)}",
            fix="give the folder as it was evaluated: its name is the method's",
        )
        for name, path in given.items()
        if name not in methods or not path.is_dir()
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    return given


def _hashes(files: Sequence[Path]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for file in files[:_MOST_FILES]:
        sha256 = _sha256(file)
        if sha256 is not None:
            paths.setdefault(sha256, file)
    return paths


def _sha256(file: Path) -> str | None:
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        return sha256_file(file)
    except OSError:
        return None


def _number(story_id: str) -> int:
    return int(story_id) if story_id.isascii() and story_id.isdigit() else -1


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
