"""Disks of a network are known by what is mounted where."""

from pathlib import Path

from fabula.schemas.disks import network_disk


def test_network_disk_when_a_folder_is_below_a_mount_names_its_kind(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\nhost:/home {tmp_path}/a\\040b nfs4 rw 0 0\nhere {tmp_path}/c tmpfs rw 0 0\n"
    )
    kinds = [network_disk(tmp_path / name, mounts) for name in ("a b/run", "c/run", "run", "a b")]
    assert kinds == ["nfs4", None, None, "nfs4"]
    assert network_disk(tmp_path, tmp_path / "none") is None
