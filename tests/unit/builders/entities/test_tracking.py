"""Tracking: against ultralytics' ByteTrack on drawn walks, and by hand."""

import inspect
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fabula.builders.entities.tracking import Look, Motion, TrackRules, assigned, track_boxes


def look(*rows: tuple[float, float, float, float, float]) -> Look:
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return Look(table[:, :4], table[:, 4])


def box(left: float, top: float = 10, score: float = 0.9) -> tuple[float, float, float, float, float]:
    return (left, top, left + 20, top + 50, score)


def walks(seed: int, looks: int = 60, people: int = 6) -> list[Look]:
    """People who walk with constant speed and some noise; boxes get lost, and scores fall."""
    random = np.random.default_rng(seed)
    start = random.uniform((0, 0), (250, 90), (people, 2))
    speed = random.normal(0, 2.5, (people, 2))
    size = random.uniform((14, 40), (26, 70), (people, 2))
    made = []
    for number in range(looks):
        place = start + number * speed + random.normal(0, 0.6, (people, 2))
        scores = np.where(random.random(people) < 0.2, random.uniform(0.12, 0.5, people),
                          random.uniform(0.55, 0.98, people))  # fmt: skip
        there = random.random(people) > 0.12
        table = np.column_stack([place, place + size])[there]
        if number % 17 < 3:
            table = np.vstack([table, [200, 20, 230, 80]])
        made.append(Look(table, np.append(scores[there], [0.8] * (len(table) - there.sum()))))
    return made


def test_motion_when_started_predicted_and_corrected_gives_the_values_of_hand() -> None:
    # Height 40: noise of places (2)^2 = 4 and of speeds (0.25)^2 = 0.0625; at the start 16 and 6.25.
    motion = Motion.start(np.array([0.0, 0.0, 20.0, 40.0]))
    assert motion.state.tolist() == [10, 20, 0.5, 40]
    motion.predict(seen=True)
    assert motion.doubt[0] == pytest.approx(16 + 6.25 + 4)
    assert motion.shared[0] == pytest.approx(6.25)
    assert motion.unrest[0] == pytest.approx(6.25 + 0.0625)
    motion.correct(np.array([6.0, 0.0, 26.0, 40.0]))
    # Gain 26.25 / (26.25 + 4), drift 6.25 / 30.25, surprise 6.
    assert motion.state[0] == pytest.approx(10 + 6 * 26.25 / 30.25)
    assert motion.speed[0] == pytest.approx(6 * 6.25 / 30.25)
    assert motion.doubt[0] == pytest.approx(26.25 - 26.25**2 / 30.25)
    assert motion.box()[3] - motion.box()[1] == pytest.approx(40)


def test_assigned_when_a_pair_costs_too_much_leaves_it_and_takes_the_best_sum() -> None:
    costs = np.array([[0.1, 0.2], [0.15, 0.9]])
    assert assigned(costs, 0.8) == [(0, 1), (1, 0)]  # 0.35 rather than 0.1 + 0.8
    assert assigned(np.array([[0.8]]), 0.8) == []


def test_track_boxes_when_somebody_is_missed_for_a_while_stays_one_track() -> None:
    looks = [look(box(10 + 2 * at)) if at not in (4, 5, 6) else look() for at in range(12)]
    (track,) = track_boxes(looks, TrackRules())
    assert [at for at, _ in track] == [0, 1, 2, 3, 7, 8, 9, 10, 11]


def test_track_boxes_when_somebody_is_missed_longer_than_the_buffer_begins_another() -> None:
    looks = [look(box(10)) if not 3 <= at < 8 else look() for at in range(12)]
    # Last seen at look 2, looked for until look 2 + buffer, taken up again at the look behind that.
    assert len(track_boxes(looks, TrackRules(buffer=4))) == 2
    assert len(track_boxes(looks, TrackRules(buffer=5))) == 1


def test_track_boxes_when_scores_are_low_goes_on_but_never_begins() -> None:
    looks = [look(box(10, score=0.9 if at < 3 else 0.3), box(200, score=0.3)) for at in range(8)]
    (track,) = track_boxes(looks, TrackRules())
    assert track == [(at, 0) for at in range(8)]


def test_track_boxes_when_a_box_appears_once_drops_it_except_at_the_first_look() -> None:
    assert track_boxes([look(), look(box(10)), look()], TrackRules()) == []
    assert track_boxes([look(box(10)), look()], TrackRules()) == [[(0, 0)]]
    assert track_boxes([], TrackRules()) == []


def test_track_boxes_when_two_people_cross_keeps_them_apart() -> None:
    looks = [look(box(10 + 6 * at), box(190 - 6 * at, top=22)) for at in range(30)]
    tracks = track_boxes(looks, TrackRules())
    assert sorted(tracks) == [[(at, 0) for at in range(30)], [(at, 1) for at in range(30)]]


@pytest.mark.slow
@pytest.mark.parametrize("buffer", [8, 100])
@pytest.mark.parametrize("seed", range(10))
def test_track_boxes_when_compared_with_ultralytics_gives_the_same_tracks(seed, buffer, monkeypatch):
    tracker_of = _theirs(monkeypatch)
    rules = TrackRules(high=0.5, low=0.1, begin=0.6, cost=0.8, buffer=buffer)
    args = SimpleNamespace(
        track_high_thresh=rules.high, track_low_thresh=rules.low, new_track_thresh=rules.begin,
        track_buffer=buffer, match_thresh=rules.cost, fuse_score=True,
    )  # fmt: skip
    # There, as in the authors' code, a track that is over can still be found in the very next frame, and is
    # forgotten for good when it is lost after that. No gap in these walks is as long as that.
    looks = walks(seed)
    theirs: dict[int, list[tuple[int, int]]] = {}
    tracker = tracker_of(args)
    for at, one in enumerate(looks):
        for row in tracker.update(_Results(one)):
            theirs.setdefault(int(row[4]), []).append((at, int(row[7])))
    ours = {found: number for number, track in enumerate(track_boxes(looks, rules)) for found in track}
    groups = [{ours.get(found) for found in track} for track in theirs.values()]
    assert sum(map(len, theirs.values())) > 200
    assert all(len(group) == 1 and None not in group for group in groups)
    assert len({next(iter(group)) for group in groups}) == len(groups)
    # They do not tell of a double that ends with its second box.
    silent = [found for track in track_boxes(looks, rules) for found in track if ours[found] not in
              {number for group in groups for number in group}]  # fmt: skip
    assert len(silent) <= 4


class _Results:
    """Boxes as that tracker takes them."""

    def __init__(self, one: Look) -> None:
        self.xyxy, self.conf = one.boxes, one.scores
        self.cls = np.zeros(len(one.scores))
        size = one.boxes[:, 2:] - one.boxes[:, :2]
        self.xywh = np.column_stack([one.boxes[:, :2] + size / 2, size])

    def __len__(self) -> int:
        return len(self.conf)

    def __getitem__(self, mask: np.ndarray) -> "_Results":
        return _Results(Look(self.xyxy[mask], self.conf[mask]))


def _theirs(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch").set_num_threads(1)
    if find_spec("ultralytics") is None:  # looked for, not imported: it replaces PIL.Image.open
        pytest.skip("the extra metrics is not installed")
    from fabula.models.vision.detectors import ultralytics_library

    ultralytics_library()
    if find_spec("lap") is None:  # what their tracker uses of it: the best assignment under a limit of costs
        monkeypatch.setitem(sys.modules, "lap", SimpleNamespace(__version__="0", lapjv=_lapjv))
    from ultralytics.trackers.byte_tracker import BYTETracker

    if len(inspect.signature(BYTETracker).parameters) != 1:
        pytest.skip("another version of that tracker")
    return BYTETracker


def _lapjv(costs: np.ndarray, extend_cost: bool, cost_limit: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Costs stand in the upper left of a square whose other rows and columns cost half the limit each."""
    rows, columns = costs.shape
    square = np.full((rows + columns, rows + columns), cost_limit / 2)
    square[rows:, columns:] = 0
    square[:rows, :columns] = costs
    found = linear_sum_assignment(square)[1][:rows]
    of_rows = np.where(found < columns, found, -1)
    of_columns = np.full(columns, -1)
    for row, column in enumerate(of_rows):
        if column >= 0:
            of_columns[column] = row
    return 0.0, of_rows, of_columns
