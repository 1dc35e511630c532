"""Which pool map stages run in: processes of this machine, or actors of a Ray cluster."""

from ...errors import ConfigError
from ..pool import Pool, WorkerPool, default_workers

POOLS = ("local", "ray")


def check_pool(name: str) -> None:
    """Raise ConfigError where there is no such pool."""
    if name not in POOLS:
        raise ConfigError("--pool", expected=" or ".join(POOLS), found=name, fix="use one of these")


def open_pools(name: str, workers: int | None, item_timeout: float) -> tuple[Pool, Pool, int]:
    """Return the pool of map stages, that of stages which take several items at once, and the first's size.

    Args:
        name: ``local`` or ``ray``.
        workers: items that are worked on at once; None for one per core, 0 for none but this process.
        item_timeout: seconds that one item may take in one stage.

    Raises:
        MissingRequirement: Ray is asked for and is not installed.
    """
    if name == "local":
        count = default_workers() if workers is None else workers
        return WorkerPool(count, item_timeout), WorkerPool(min(count, 1), item_timeout), count
    from .ray_pool import RayPool, cluster_workers, connect

    connect()
    count = cluster_workers() if workers is None else workers
    return RayPool(count, item_timeout), RayPool(min(count, 1), item_timeout, devices=True), count
