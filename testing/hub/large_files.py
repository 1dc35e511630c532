"""The storage for large files: uploads in one piece or in parts, known by their SHA-256."""

from ...schemas.canonical import Json, sha256_bytes
from .store import Refusal, Store
from .wire import Call, Reply, json_reply, ranged


class LargeFiles:
    """Answers what large files need.

    Args:
        store: what is kept.
        size: bytes from which an object is uploaded in parts of so many; None for never.
    """

    def __init__(self, store: Store, size: int | None) -> None:
        self.store = store
        self.size = size
        self._parts: dict[tuple[str, int], bytes] = {}

    def batch(self, call: Call, url: str) -> Reply:
        """Say which objects are to be uploaded, and where."""
        objects = []
        for one in call.document()["objects"]:
            where = f"{url}/lfs-storage/{one['oid']}"
            entry = {"oid": one["oid"], "size": one["size"]}
            if one["oid"] not in self.store.objects:
                entry["actions"] = {
                    "upload": self._upload_action(where, one["size"]),
                    "verify": {"href": f"{where}/verify"},
                }
            objects.append(entry)
        return json_reply({"transfer": "basic", "objects": objects})

    def upload(self, call: Call) -> Reply:
        """Keep an object."""
        # The address is the permission, as with the signed addresses of a real storage.
        self.store.upload(call.places["sha256"], call.body)
        return Reply()

    def _upload_action(self, place: str, size: int) -> dict[str, Json]:
        if self.size is None or size <= self.size:
            return {"href": place}
        count = -(-size // self.size)
        parts = {str(number): f"{place}/part/{number}" for number in range(1, count + 1)}
        return {"href": f"{place}/complete", "header": {"chunk_size": str(self.size), **parts}}

    def part(self, call: Call) -> Reply:
        """Keep a part of an object."""
        self._parts[call.places["sha256"], int(call.places["part"])] = call.body
        return Reply(headers={"ETag": f'"{sha256_bytes(call.body)}"'})

    def complete(self, call: Call) -> Reply:
        """Put the parts of an object together."""
        numbers = [one["partNumber"] for one in call.document()["parts"]]
        whole = b"".join(self._parts[call.places["sha256"], number] for number in numbers)
        self.store.upload(call.places["sha256"], whole)
        return json_reply({})

    def verify(self, call: Call) -> Reply:
        """Say whether an object is there."""
        known = self.store.objects.get(call.places["sha256"])
        if known is None or len(known) != call.document()["size"]:
            raise Refusal(404, "the object is not there")
        return json_reply({})

    def download(self, call: Call) -> Reply:
        """Give an object."""
        if call.places["sha256"] not in self.store.objects:
            raise Refusal(404, "the object is not there")
        return ranged(call, self.store.objects[call.places["sha256"]], {})
