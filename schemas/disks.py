"""Whether a folder is on a network disk, where SQLite cannot lock files reliably."""

from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
"""The list of what is mounted where, as Linux gives it."""
_NETWORK = (
    "nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.mountpoint-s3", "fuse.rclone", "fuse.juicefs",
    "fuse.ceph", "wekafs",
)  # fmt: skip
"""How the names of network file systems start."""


def network_disk(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of the network file system that a folder is on, such as ``nfs4``; None for a local one.

    Only Linux tells; elsewhere None.
    """
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    where, depth, kind = folder.resolve(), -1, ""
    for line in lines:
        _, point, form, *_ = line.split(" ")
        mounted = Path(point.replace("\\040", " "))
        if where.is_relative_to(mounted) and len(mounted.parts) >= depth:
            depth, kind = len(mounted.parts), form
    return kind if kind.startswith(_NETWORK) else None
