"""What the Hub does for each route; knows nothing of sockets."""

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import yaml

from ...schemas.canonical import Json, sha256_bytes
from .store import Change, Commit, Entry, Refusal, Repository, Store
from .wire import Call, Reply, json_reply, ranged, refused


class Service:
    """Answers calls; one at a time, so that a commit is all or nothing.

    Each route has a method of its name here; what it cannot do, Xet among it, is not there.

    Args:
        store: what is kept.
        page: most entries of one listing.

    Attributes:
        part: bytes from which a large file is uploaded in parts of so many; None for never.
    """

    def __init__(self, store: Store, *, page: int = 1000) -> None:
        self.store, self.page = store, page
        self.part: int | None = None
        self.url = self.storage_url = ""
        self._parts: dict[tuple[str, int], bytes] = {}
        self._lock = threading.Lock()

    def answer(self, call: Call) -> Reply:
        """Answer a call; a refusal is an answer too."""
        try:
            answer = getattr(self, f"_{call.route.replace('-', '_')}", None)
            if answer is None:
                raise Refusal(404, "Sorry, we can't find the page you are looking for.")
            with self._lock:
                reply: Reply = answer(call)
                return reply
        except Refusal as refusal:
            return refused(refusal)
        except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            return refused(Refusal(400, f"the body has an unexpected shape: {error!r}"))

    def _repository(self, call: Call, *, write: bool = False) -> Repository:
        repository = self.store.repositories.get(call.places["repo"])
        if repository is None or (repository.private and call.user is None):
            # A stranger is not told whether it is there.
            raise Refusal(401 if call.user is None else 404, "Repository not found", "RepoNotFound")
        if write:
            _may_write(call, repository.name.removeprefix("spaces/"))
        return repository

    def _create_repo(self, call: Call) -> Reply:
        given = call.document()
        kind = given.get("type")
        name = f"{given.get('organization') or call.user}/{given['name']}"
        is_new = f"spaces/{name}" not in self.store.repositories
        if kind not in ("dataset", "space") or (kind == "space" and given.get("sdk") != "static" and is_new):
            raise Refusal(400, "this Hub keeps data sets and static Spaces only")
        _may_write(call, name)
        private = given.get("visibility") == "private" or bool(given.get("private"))
        place = {"url": f"{self.url}/{kind}s/{name}", "id": name, "name": name}
        try:
            self.store.create(f"spaces/{name}" if kind == "space" else name, private=private)
        except Refusal as refusal:
            raise Refusal(refusal.status, refusal.message, more=place) from None
        return json_reply(place)

    def _whoami(self, call: Call) -> Reply:
        if call.user is None:
            raise Refusal(401, "Invalid user token.")
        role = "read" if call.user.endswith("-reads") else "write"
        token = {"accessToken": {"role": role}}
        return json_reply({"type": "user", "name": call.user, "orgs": [], "auth": token})

    def _validate_yaml(self, call: Call) -> Reply:
        text = str(call.document()["content"])
        head = re.match(r"---\n(.*?)\n---(\n|$)", text, re.DOTALL)
        try:
            front = yaml.safe_load(head[1]) if head else {}
        except yaml.YAMLError as error:
            return json_reply({"errors": [{"message": f"invalid YAML: {error}"}], "warnings": []}, 400)
        if not isinstance(front, dict):
            return json_reply({"errors": [{"message": "metadata must be a mapping"}], "warnings": []}, 400)
        return json_reply({"errors": [], "warnings": []})

    def _info(self, call: Call) -> Reply:
        repository = self._repository(call)
        name = repository.name.removeprefix("spaces/")
        commit = repository.commit_of(call.places.get("rev", "main"))
        return json_reply({
            "_id": name, "id": name, "author": name.partition("/")[0], "sha": commit.oid,
            "private": repository.private, "gated": False, "disabled": False, "tags": [],
            "lastModified": _date(commit), "siblings": [{"rfilename": path} for path in sorted(commit.tree)],
        })  # fmt: skip

    def _refs(self, call: Call) -> Reply:
        repository = self._repository(call)
        groups = {"branches": ("heads", repository.branches), "tags": ("tags", repository.tags)}
        listed = {
            group: [
                {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid}
                for name, oid in sorted(found.items())
            ]
            for group, (kind, found) in groups.items()
        }
        return json_reply({**listed, "converts": []})

    def _tree(self, call: Call) -> Reply:
        commit = self._repository(call).commit_of(call.places["rev"])
        prefix = call.places.get("path", "").rstrip("/")
        recursive = call.query.get("recursive", "").lower() in ("1", "true")
        listed = list(_listing(commit.tree, prefix, recursive=recursive))
        if prefix and not listed:
            raise Refusal(404, f"{prefix} does not exist", "EntryNotFound")
        start = int(call.query.get("cursor", "0"))
        headers = {}
        if start + self.page < len(listed):
            rest = f"{call.headers['x-path']}?recursive={recursive}&cursor={start + self.page}"
            headers["Link"] = f'<{self.url}{rest}>; rel="next"'
        return json_reply(listed[start : start + self.page], headers=headers)

    def _paths_info(self, call: Call) -> Reply:
        commit = self._repository(call).commit_of(call.places["rev"])
        form = "form-urlencoded" in call.headers.get("content-type", "")
        paths = parse_qs(call.body.decode())["paths"] if form else list(call.document()["paths"])
        return json_reply([_file(path, commit.tree[path]) for path in paths if path in commit.tree])

    def _commits(self, call: Call) -> Reply:
        history = self._repository(call).history(call.places["rev"])
        return json_reply([
            {"id": made.oid, "title": made.title, "message": made.description, "date": _date(made),
             "authors": []}
            for made in history
        ])  # fmt: skip

    def _preupload(self, call: Call) -> Reply:
        repository, revision = self._repository(call, write=True), call.places["rev"]
        tree = repository.commit_of(revision).tree
        found = []
        for file in call.document()["files"]:
            path = file["path"]
            large = self.store.is_large(repository, revision, path, file["size"])
            entry = tree.get(path)
            known = {} if entry is None else {"oid": entry.sha256 or entry.oid}
            mode = "lfs" if large else "regular"
            found.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **known})
        return json_reply({"files": found})

    # The storage for large files: uploads in one piece or in parts, known by their SHA-256. The address is
    # the permission, as with the signed addresses of a real storage.

    def _lfs_batch(self, call: Call) -> Reply:
        """Say which objects are to be uploaded, and where."""
        self._repository(call, write=True)
        objects = []
        for wanted in call.document()["objects"]:
            where = f"{self.url}/lfs-storage/{wanted['oid']}"
            entry = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.store.objects:
                upload = self._upload_action(where, wanted["size"])
                entry["actions"] = {"upload": upload, "verify": {"href": f"{where}/verify"}}
            objects.append(entry)
        return json_reply({"transfer": "basic", "objects": objects})

    def _upload_action(self, place: str, size: int) -> dict[str, Json]:
        if self.part is None or size <= self.part:
            return {"href": place}
        count = -(-size // self.part)
        parts = {str(number): f"{place}/part/{number}" for number in range(1, count + 1)}
        return {"href": f"{place}/complete", "header": {"chunk_size": str(self.part), **parts}}

    def _lfs_upload(self, call: Call) -> Reply:
        self.store.upload(call.places["sha256"], call.body)
        return Reply()

    def _lfs_part(self, call: Call) -> Reply:
        self._parts[call.places["sha256"], int(call.places["part"])] = call.body
        return Reply(headers={"ETag": f'"{sha256_bytes(call.body)}"'})

    def _lfs_complete(self, call: Call) -> Reply:
        numbers = [part["partNumber"] for part in call.document()["parts"]]
        whole = b"".join(self._parts[call.places["sha256"], number] for number in numbers)
        self.store.upload(call.places["sha256"], whole)
        return json_reply({})

    def _lfs_verify(self, call: Call) -> Reply:
        known = self.store.objects.get(call.places["sha256"])
        if known is None or len(known) != call.document()["size"]:
            raise Refusal(404, "the object is not there")
        return json_reply({})

    def _lfs_download(self, call: Call) -> Reply:
        if call.places["sha256"] not in self.store.objects:
            raise Refusal(404, "the object is not there")
        return ranged(call, self.store.objects[call.places["sha256"]], {})

    def _commit(self, call: Call) -> Reply:
        repository, branch = self._repository(call, write=True), call.places["rev"]
        if branch not in repository.branches:
            raise Refusal(404, f"Invalid rev id: {branch}", "RevisionNotFound")
        head, changes = _read_commit(call.body)
        parent = head.get("parentCommit")
        if parent is not None and not repository.branches[branch].startswith(parent):
            raise Refusal(412, "A commit has happened since. Please refresh and try again.")
        made = self.store.commit(repository, head["summary"], head.get("description", ""), changes, branch)
        name = repository.name if repository.name.startswith("spaces/") else f"datasets/{repository.name}"
        url = f"{self.url}/{name}/commit/{made.oid}"
        return json_reply({"success": True, "commitOid": made.oid, "commitUrl": url, "hookOutput": ""})

    def _tag(self, call: Call) -> Reply:
        repository = self._repository(call, write=True)
        name = call.document()["tag"]
        commit = repository.commit_of(call.places["rev"])
        if name in repository.tags:
            raise Refusal(409, f"Tag reference exists already: {name}")
        repository.tags[name] = commit.oid
        return json_reply({})

    def _tag_delete(self, call: Call) -> Reply:
        if self._repository(call, write=True).tags.pop(call.places["rev"], None) is None:
            raise Refusal(404, "no such tag", "RevisionNotFound")
        return json_reply({})

    def _resolve(self, call: Call) -> Reply:
        commit = self._repository(call).commit_of(call.places["rev"])
        entry = commit.tree.get(call.places["path"])
        if entry is None:
            raise Refusal(404, "Entry not found", "EntryNotFound")
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{entry.oid}"'}
        if entry.sha256 is not None:
            headers |= {
                "X-Linked-Size": str(entry.size),
                "X-Linked-ETag": f'"{entry.sha256}"',
                # Under another host name, as a real storage: the caller's token must not go there.
                "Location": f"{self.storage_url}/lfs-storage/{entry.sha256}",
            }
            return Reply(b"", 302, headers)
        return ranged(call, self.store.content(entry), headers)

    _resolve_head = _resolve


def _may_write(call: Call, name: str) -> None:
    if call.user is None:
        raise Refusal(401, "Invalid username or password.")
    if name.partition("/")[0] != call.user:
        raise Refusal(403, f"You don't have the rights to write to {name}")


def _read_commit(body: bytes) -> tuple[dict[str, Any], list[Change]]:
    head: dict[str, Any] = {}
    changes = []
    for line in body.splitlines():
        one = json.loads(line)
        value = one["value"]
        if one["key"] == "header":
            head = value
        elif one["key"] == "file":
            changes.append(Change(value["path"], base64.b64decode(value["content"])))
        elif one["key"] == "lfsFile":
            changes.append(Change(value["path"], sha256=value["oid"]))
        else:
            changes.append(Change(value["path"], folder=one["key"] == "deletedFolder"))
    return head, changes


def _listing(tree: Mapping[str, Entry], prefix: str, *, recursive: bool) -> Iterator[dict[str, Json]]:
    within = f"{prefix}/" if prefix else ""
    folders: set[str] = set()
    for path, entry in sorted(tree.items()):
        if not path.startswith(within):
            continue
        inner = path[len(within) :].split("/")
        depth = len(inner) - 1 if recursive else min(1, len(inner) - 1)
        for level in range(1, depth + 1):
            folder = within + "/".join(inner[:level])
            if folder not in folders:
                folders.add(folder)
                yield {"type": "directory", "path": folder, "oid": "0" * 40, "size": 0}
        if recursive or len(inner) == 1:
            yield _file(path, entry)


def _file(path: str, entry: Entry) -> dict[str, Json]:
    found: dict[str, Json] = {"type": "file", "path": path, "oid": entry.oid, "size": entry.size}
    if entry.sha256 is not None:
        found["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
    return found


def _date(commit: Commit) -> str:
    return datetime.fromtimestamp(commit.second, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
